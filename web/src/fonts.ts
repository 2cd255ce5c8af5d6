// The type pair of the page, from the file itself: Newsreader tells the story, Instrument Sans labels pictures.
// Noto Serif SC has the characters of the story alone; other Chinese is in the reader's own font. All are OFL (fonts/OFL.txt).

import sans from "./fonts/instrument-sans.woff2";
import serif from "./fonts/newsreader.woff2";
import chinese from "./fonts/noto-serif-sc.woff2";

const HAN = "U+3001-9FFF, U+FF01-FF5E";

/** From memory, since the page may load nothing; once for each page, also with several widgets in it. */
export function loadFonts(): void {
  const bytes = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const faces: [string, string, FontFaceDescriptors][] = [["Newsreader", serif, { weight: "400 600" }], ["Instrument Sans", sans, { weight: "400 700" }], ["Story SC", chinese, { weight: "400 600", unicodeRange: HAN }]];
  for (const [name, text, about] of faces) {
    if ([...document.fonts].some(({ family }) => family === name)) continue;
    const face = new FontFace(name, bytes(text), about);
    document.fonts.add(face);
    void face.load();
  }
}
