// GIF89a: pictures of at most 256 colours, each drawn over the one before, so that only what changed is written.
//
//   head | again and again | picture …: how long it stays, the box that changed, its colours, its pixels | ;
//
// Pixels are numbers of colours, packed with LZW: a code stands for a run of pixels that came before, and every code that is
// written makes one more, which is a pixel longer.

const CLEAR = 256; // all runs are forgotten; 257 ends the picture
const MOST = 4096; // runs
const TRANSPARENT = 255; // this number's pixel stays as it was

export class Gif {
  private readonly pieces: Uint8Array<ArrayBuffer>[] = [];
  private before: Uint32Array | null = null;
  /** Of the last picture: how long it stays, in hundredths of a second. */
  private stays = Uint8Array.of();
  private hundredths = 0;

  constructor(private readonly width: number, private readonly height: number) {
    this.pieces.push(ascii("GIF89a"), Uint8Array.of(...two(width), ...two(height), 0, 0, 0, 0x21, 0xff, 11), ascii("NETSCAPE2.0"), Uint8Array.of(3, 1, 0, 0, 0));
  }

  /** A picture as a canvas has it, one number a pixel: alpha, blue, green and red from the highest byte on. */
  add(pixels: Uint32Array, hundredths: number): void {
    const box = this.changed(pixels);
    if (!box) return this.stay(this.hundredths + hundredths);
    const [left, top, right, bottom] = box;
    const [wide, tall] = [right - left + 1, bottom - top + 1];
    const inside = new Uint32Array(wide * tall);
    for (let y = 0; y < tall; y++) inside.set(pixels.subarray((top + y) * this.width + left, (top + y) * this.width + right + 1), y * wide);
    const { before } = this;
    if (before) for (let y = 0, n = 0; y < tall; y++) for (let x = 0; x < wide; x++, n++) if (before[(top + y) * this.width + left + x] === inside[n]) inside[n] = 0;
    const { colours, numbers } = reduced(inside);
    const table = new Uint8Array(3 * 256);
    colours.forEach((colour, n) => table.set([colour & 255, (colour >> 8) & 255, (colour >> 16) & 255], 3 * n));
    this.stays = Uint8Array.of(0, 0);
    this.pieces.push(Uint8Array.of(0x21, 0xf9, 4, 0b101), this.stays, Uint8Array.of(TRANSPARENT, 0), Uint8Array.of(0x2c, ...[left, top, wide, tall].flatMap(two), 0x87), table, packed(numbers));
    this.stay(hundredths);
    this.before = pixels.slice();
  }

  file(): Blob {
    return new Blob([...this.pieces, ascii(";")], { type: "image/gif" });
  }

  private stay(hundredths: number): void {
    this.hundredths = hundredths;
    this.stays.set(two(hundredths));
  }

  /** From the first to the last column and row that differ from the picture before. */
  private changed(pixels: Uint32Array): [number, number, number, number] | null {
    const { before, width, height } = this;
    if (!before) return [0, 0, width - 1, height - 1];
    let [left, top, right, bottom] = [width, height, -1, -1];
    for (let y = 0, n = 0; y < height; y++) {
      for (let x = 0; x < width; x++, n++) {
        if (pixels[n] === before[n]) continue;
        [left, right, bottom] = [Math.min(left, x), Math.max(right, x), y];
        top = Math.min(top, y);
      }
    }
    return right < 0 ? null : [left, top, right, bottom];
  }
}

/** At most 255 colours, and for each pixel the number of its own or of one like it; 0 has none and is transparent. */
function reduced(pixels: Uint32Array): { colours: number[]; numbers: Uint8Array } {
  const counts = new Map<number, number>();
  for (const one of pixels) counts.set(one, (counts.get(one) ?? 0) + 1);
  counts.delete(0);
  const all = [...counts].sort((one, other) => other[1] - one[1]);
  const colours = all.length <= TRANSPARENT ? all.map(([colour]) => colour) : likes(all);
  const numberOf = new Map(colours.map((colour, n) => [colour, n]));
  numberOf.set(0, TRANSPARENT);
  const numbers = new Uint8Array(pixels.length);
  pixels.forEach((one, n) => {
    let number = numberOf.get(one);
    if (number === undefined) numberOf.set(one, (number = nearest(one, colours)));
    numbers[n] = number;
  });
  return { colours, numbers };
}

/** Of colours that are alike in the first bits of red, green and blue the most frequent one, with so few bits that it is enough. */
function likes(all: [colour: number, count: number][]): number[] {
  let found: Map<number, number>;
  for (let bits = 5; ; bits--) {
    const first = ((0xff00 >> bits) & 0xff) * 0x010101;
    found = new Map(all.toReversed().map(([colour]) => [colour & first, colour]));
    if (found.size <= TRANSPARENT) return [...found.values()];
  }
}

function nearest(colour: number, colours: number[]): number {
  let [best, found] = [Infinity, 0];
  colours.forEach((one, n) => {
    const [red, green, blue] = [0, 8, 16].map((shift) => ((one >> shift) & 255) - ((colour >> shift) & 255)) as [number, number, number];
    const apart = red * red + green * green + blue * blue;
    if (apart < best) [best, found] = [apart, n];
  });
  return found;
}

/** Codes of 9 to 12 bits, the lowest bit first, in blocks of at most 255 bytes. */
function packed(numbers: Uint8Array): Uint8Array<ArrayBuffer> {
  const out: number[] = [8]; // bits of a pixel
  let block: number[] = [];
  let [bits, held, size, next] = [0, 0, 9, CLEAR + 2];
  const runs = new Map<number, number>(); // of a run and the pixel after it
  const write = (code: number) => {
    bits |= code << held;
    for (held += size; held >= 8; held -= 8, bits >>>= 8) {
      block.push(bits & 255);
      if (block.length === 255) flush();
    }
  };
  const flush = () => {
    if (block.length) out.push(block.length, ...block);
    block = [];
  };
  write(CLEAR);
  let run = numbers[0]!;
  for (let n = 1; n < numbers.length; n++) {
    const key = (run << 8) | numbers[n]!;
    const longer = runs.get(key);
    if (longer !== undefined) {
      run = longer;
      continue;
    }
    write(run);
    if (next < MOST) {
      if (next === 1 << size) size++;
      runs.set(key, next++);
    } else {
      write(CLEAR);
      runs.clear();
      [size, next] = [9, CLEAR + 2];
    }
    run = numbers[n]!;
  }
  write(run);
  if (next === 1 << size && size < 12) size++;
  write(CLEAR + 1);
  if (held) block.push(bits & 255);
  flush();
  out.push(0);
  return Uint8Array.from(out);
}

const two = (number: number): [number, number] => [number & 255, number >> 8];
const ascii = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
