// The type pair of the page, from the file itself: Newsreader tells the story, Instrument Sans labels pictures.
// Noto Serif SC has the characters of the story alone; other Chinese is in the reader's own font. All are OFL (fonts/OFL.txt).

import sans from "./fonts/instrument-sans.woff2";
import serif from "./fonts/newsreader.woff2";
import chinese from "./fonts/noto-serif-sc.woff2";

const HAN = "U+3001-9FFF, U+FF01-FF5E";
const FACES: { name: string; text: string; about: FontFaceDescriptors }[] = [
  { name: "Newsreader", text: serif, about: { weight: "400 600" } }, { name: "Instrument Sans", text: sans, about: { weight: "400 700" } },
  { name: "Story SC", text: chinese, about: { weight: "400 600", unicodeRange: HAN } },
];

/** From memory, since the page may load nothing; once for each page, also with several widgets in it. */
export function loadFonts(): void {
  const bytes = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  for (const { name, text, about } of FACES) {
    if ([...document.fonts].some(({ family }) => family === name)) continue;
    const face = new FontFace(name, bytes(text), about);
    document.fonts.add(face);
    void face.load();
  }
}

/** The same as rules, for a picture that is a document of its own. Without ranges, for which such a document does not wait. */
export function fontRules(): string {
  return FACES.map(({ name, text, about }) => `@font-face { font-family: "${name}"; font-weight: ${about.weight}; src: url(data:font/woff2;base64,${text}) format("woff2"); }`).join("\n");
}
