// A file of numpy.savez_compressed, as Python reads it: a zip archive whose members NAME.npy are opened when they are asked for.
//
//   member …, then a directory: PK 1 2 … method 10, sizes 20 and 24, lengths of name, extra and comment 28, 30, 32, start 42, name 46
//   NAME.npy: "\x93NUMPY", version, length of the header at 8, {'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }, numbers

import { inflated } from "./records";

export interface Stored {
  shape: number[];
  /** float16 is widened to float64. */
  values: Float64Array | Float32Array | Uint8Array;
}

export interface Archive {
  names: string[];
  array(name: string): Promise<Stored>;
  /** The JSON that a text holds. */
  json(name: string): Promise<any>;
}

export function archive(file: ArrayBuffer): Archive {
  const view = new DataView(file);
  const text = (start: number, bytes: number) => new TextDecoder().decode(new Uint8Array(file, start, bytes));
  const starts = new Map<string, [start: number, bytes: number]>();
  const end = file.byteLength - 22; // numpy writes no comment
  for (let n = view.getUint16(end + 10, true), at = view.getUint32(end + 16, true); n > 0; n--) {
    const [name, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true)) as [number, number, number];
    starts.set(text(at + 46, name).replace(/\.npy$/, ""), [view.getUint32(at + 42, true), view.getUint32(at + 20, true)]);
    at += 46 + name + extra + comment;
  }
  async function opened(name: string): Promise<{ kind: string; shape: number[]; body: ArrayBuffer }> {
    const found = starts.get(name);
    if (!found) throw new Error(`no array ${name}`);
    const [start, bytes] = found;
    const body = start + 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
    const npy = await inflated(new Uint8Array(file, body, bytes), "deflate-raw");
    const length = new DataView(npy).getUint16(8, true);
    const header = new TextDecoder().decode(new Uint8Array(npy, 10, length));
    const shape = /'shape': \(([^)]*)\)/.exec(header)![1]!.split(",").filter((one) => one.trim()).map(Number);
    return { kind: /'descr': '([^']+)'/.exec(header)![1]!, shape, body: npy.slice(10 + length) };
  }
  return {
    names: [...starts.keys()],
    async array(name) {
      const { kind, shape, body } = await opened(name);
      if (kind === "<f2") return { shape, values: widened(new Uint16Array(body)) };
      if (kind === "<f4") return { shape, values: new Float32Array(body) };
      if (kind === "<f8") return { shape, values: new Float64Array(body) };
      if (kind === "|u1") return { shape, values: new Uint8Array(body) };
      throw new Error(`${name}: no numbers but ${kind}`);
    },
    async json(name) {
      const points = new Uint32Array((await opened(name)).body); // <U…: UTF-32
      return JSON.parse(Array.from(points, (point) => String.fromCodePoint(point)).join(""));
    },
  };
}

/** float16: (-1)^s · 2^(e - 15) · (1 + f/1024), and 2^-14 · f/1024 where e is 0. */
function widened(half: Uint16Array): Float64Array {
  const wide = new Float64Array(half.length);
  half.forEach((bits, n) => {
    const [exponent, rest] = [(bits >> 10) & 31, bits & 1023];
    wide[n] = (bits & 0x8000 ? -1 : 1) * (exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : (2 ** -14 * rest) / 1024);
  });
  return wide;
}
