// The random numbers of torch on a CPU, draw for draw: torch.Generator().manual_seed(seed), torch.randn.
//
//   MT19937 (Matsumoto and Nishimura 1998) ─► u in [0, 1) ─► Box-Muller: √(-2 ln(1 - u₁)) · cos 2πu₂, and · sin 2πu₂
//
// Fewer than 16 numbers are drawn two at a time; more in blocks of 16, eight u₁ before eight u₂, the last block once more.

import { toEven } from "./rounding";

const [SIZE, MIDDLE] = [624, 397];

export class Generator {
  private state = new Uint32Array(SIZE);
  private next = SIZE;
  /** The sine of a pair whose cosine was taken last. */
  private kept: number | null = null;

  constructor(seed: number) {
    this.state[0] = seed;
    for (let n = 1; n < SIZE; n++) {
      const before = this.state[n - 1]! ^ (this.state[n - 1]! >>> 30);
      this.state[n] = Math.imul(1812433253, before) + n;
    }
  }

  /** 32 random bits. */
  private bits(): number {
    if (this.next === SIZE) this.twist();
    let y = this.state[this.next++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  private twist(): void {
    const { state } = this;
    for (let n = 0; n < SIZE; n++) {
      const y = (state[n]! & 0x80000000) | (state[(n + 1) % SIZE]! & 0x7fffffff);
      state[n] = state[(n + MIDDLE) % SIZE]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  /** [0, 1) with 53 bits; the first draw has the high ones. */
  private double(): number {
    const high = this.bits() & 0x1fffff;
    return (high * 2 ** 32 + this.bits()) * 2 ** -53;
  }

  /** [0, 1) with 24 bits. */
  private single(): number {
    return (this.bits() & 0xffffff) * 2 ** -24;
  }

  /** torch.randn(count, dtype=torch.float64) */
  normal(count: number): Float64Array {
    if (count >= 16) return this.blocks(count, () => this.double(), (x) => x);
    return Float64Array.from({ length: count }, () => this.pair());
  }

  /** torch.randn(count): float32 */
  normal32(count: number): Float64Array {
    if (count >= 16) return this.blocks(count, () => this.single(), Math.fround);
    return Float64Array.from({ length: count }, () => Math.fround(this.pair()));
  }

  /** One of two numbers; here the angle is drawn first. */
  private pair(): number {
    if (this.kept !== null) {
      const kept = this.kept;
      this.kept = null;
      return kept;
    }
    const angle = 2 * Math.PI * this.double();
    const radius = Math.sqrt(-2 * Math.log1p(-this.double()));
    this.kept = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  private blocks(count: number, uniform: () => number, round: (x: number) => number): Float64Array {
    const drawn = Float64Array.from({ length: count }, uniform);
    let start = 0;
    for (; start + 16 <= count; start += 16) box(drawn.subarray(start, start + 16), round);
    if (start < count) {
      const last = drawn.subarray(count - 16);
      last.forEach((_, n) => void (last[n] = uniform()));
      box(last, round);
    }
    return drawn;
  }
}

/** Sixteen uniform numbers become normal ones. */
function box(block: Float64Array, round: (x: number) => number): void {
  for (let n = 0; n < 8; n++) {
    const radius = Math.sqrt(-2 * Math.log(1 - block[n]!));
    const angle = 2 * Math.PI * block[n + 8]!;
    block[n] = round(radius * Math.cos(angle));
    block[n + 8] = round(radius * Math.sin(angle));
  }
}

/** The vector of each word, d normal numbers: seeded with the CRC-32 of its letters, so always the same. */
export function wordVectors(words: string[], d: number, seed = 0): Float64Array[] {
  const letters = new TextEncoder();
  return words.map((word) => new Generator(seed + crc32(letters.encode(word))).normal(d));
}

/** A number of the worked examples: with one decimal, x·7 rounded, over 10. */
export function oneDecimal(x: number): number {
  return toEven(x * 7) / 10;
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
