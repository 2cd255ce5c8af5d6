// What takes the models' time, on numbers that lie in one memory: in WebAssembly (kernel.c), or in plain TypeScript where
// there is none. Keys and values of earlier bytes stay where they are.

import code from "./kernel.wasm";

export const [D, WIDTH] = [128, 32];

export interface Kernel {
  /** Memory for so many numbers, for as long as the kernel lives. */
  room(count: number): Float64Array;
  /** y[p] = W x[p], W [out][into] */
  linear(x: Float64Array, w: Float64Array, tokens: number, into: number, out: number, y: Float64Array): void;
  /** One head: q [tokens][stride], k, v and y [token][D]; the query p sees the keys 0 … before + p. */
  attend(q: Float64Array, k: Float64Array, v: Float64Array, tokens: number, before: number, stride: number, slope: number, y: Float64Array): void;
}

const PAGE = 65536; // bytes

/** Throws where the browser has no WebAssembly with 128-bit lanes, or forbids it. */
export async function compiled(numbers: number): Promise<Kernel> {
  const bytes = Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes);
  const { memory, __heap_base, linear, attend } = instance.exports as {
    memory: WebAssembly.Memory;
    __heap_base: WebAssembly.Global;
    linear(...numbers: number[]): void;
    attend(...numbers: number[]): void;
  };
  let free = Math.ceil((__heap_base.value as number) / 16) * 16;
  memory.grow(Math.ceil((free + 8 * numbers - memory.buffer.byteLength) / PAGE)); // once: it takes away the arrays of before
  const room = (count: number) => {
    const made = new Float64Array(memory.buffer, free, count);
    free += Math.ceil(count / 2) * 16;
    return made;
  };
  const scores = room(MOST_SCORES);
  return {
    room,
    linear: (x, w, tokens, into, out, y) => linear(x.byteOffset, w.byteOffset, tokens, into, out, y.byteOffset),
    attend: (q, k, v, tokens, before, stride, slope, y) => attend(q.byteOffset, k.byteOffset, v.byteOffset, tokens, before, stride, slope, scores.byteOffset, y.byteOffset),
  };
}

/** Numbers that `compiled` takes for itself. */
export const MOST_SCORES = 2048;

export function plain(): Kernel {
  const scores = new Float64Array(MOST_SCORES);
  return {
    room: (count) => new Float64Array(count),
    linear(x, w, tokens, into, out, y) {
      let p = 0;
      // Four tokens by two outputs at a time.
      for (; p + 4 <= tokens; p += 4) {
        const [a, b, c, d] = [p * into, (p + 1) * into, (p + 2) * into, (p + 3) * into];
        for (let o = 0; o < out; o += 2) {
          const [r, s] = [o * into, (o + 1) * into];
          let [ar, as, br, bs, cr, cs, dr, ds] = [0, 0, 0, 0, 0, 0, 0, 0];
          for (let n = 0; n < into; n++) {
            const [u, v] = [w[r + n]!, w[s + n]!];
            ar += x[a + n]! * u;
            as += x[a + n]! * v;
            br += x[b + n]! * u;
            bs += x[b + n]! * v;
            cr += x[c + n]! * u;
            cs += x[c + n]! * v;
            dr += x[d + n]! * u;
            ds += x[d + n]! * v;
          }
          const at = p * out + o;
          [y[at], y[at + 1], y[at + out], y[at + out + 1]] = [ar, as, br, bs];
          [y[at + 2 * out], y[at + 2 * out + 1], y[at + 3 * out], y[at + 3 * out + 1]] = [cr, cs, dr, ds];
        }
      }
      for (; p < tokens; p++) {
        for (let o = 0; o < out; o++) {
          let sum = 0;
          for (let n = 0, a = p * into, r = o * into; n < into; n++) sum += x[a + n]! * w[r + n]!;
          y[p * out + o] = sum;
        }
      }
    },
    attend(q, k, v, tokens, before, stride, slope, y) {
      const over = 1 / Math.sqrt(WIDTH);
      for (let p = 0; p < tokens; p++) {
        const keys = before + p + 1;
        let most = -Infinity;
        for (let j = 0; j < keys; j++) {
          let sum = 0;
          for (let n = 0, a = p * stride, b = j * D; n < WIDTH; n++) sum += q[a + n]! * k[b + n]!;
          scores[j] = sum * over - slope * (keys - 1 - j);
          if (scores[j]! > most) most = scores[j]!;
        }
        const mixed = y.subarray(p * D, p * D + WIDTH).fill(0);
        let total = 0;
        for (let j = 0; j < keys; j++) {
          const weight = Math.exp(scores[j]! - most);
          total += weight;
          for (let n = 0, b = j * D; n < WIDTH; n++) mixed[n]! += weight * v[b + n]!;
        }
        for (let n = 0; n < WIDTH; n++) mixed[n]! /= total;
      }
    },
  };
}
