// What Python packs (explorer/data.py), unpacked without a copy.

export interface Numbers {
  shape: number[];
  values: Float64Array | Int32Array;
}

export interface Data {
  arrays: Record<string, Numbers>;
  python: string;
  facts: Record<string, any>;
}

interface Header {
  facts: Record<string, any>;
  python: string;
  arrays: { name: string; dtype: string; shape: number[]; start: number; bytes: number }[];
}

export function unpack(buffer: ArrayBuffer): Data {
  const text = new TextDecoder();
  if (text.decode(new Uint8Array(buffer, 0, 6)) !== "posenc") throw new Error("these are no numbers of posenc");
  const length = new DataView(buffer).getUint32(8, true);
  const header = JSON.parse(text.decode(new Uint8Array(buffer, 12, length))) as Header;
  const body = Math.ceil((12 + length) / 8) * 8;
  const arrays: Record<string, Numbers> = {};
  for (const { name, dtype, shape, start, bytes } of header.arrays) {
    const values = dtype === "int32" ? new Int32Array(buffer, body + start, bytes / 4) : new Float64Array(buffer, body + start, bytes / 8);
    arrays[name] = { shape, values };
  }
  return { arrays, python: header.python, facts: header.facts };
}

interface Together {
  answers: { facts: Record<string, any>; python: string; arrays: Record<string, number> }[];
  arrays: [dtype: string, shape: number[]][];
}

/** Answers of one view, which an exported file holds (explorer/packed.py). */
export function unpackAll(buffer: ArrayBuffer): Data[] {
  const length = new DataView(buffer).getUint32(0, true);
  const { answers, arrays } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Together;
  let at = 4 + length;
  const numbers = arrays.map(([dtype, shape]): Numbers => {
    const kind = { int32: Int32Array, float32: Float32Array, float64: Float64Array }[dtype]!;
    const end = at + kind.BYTES_PER_ELEMENT * shape.reduce((a, b) => a * b, 1);
    const values = new kind(buffer.slice(at, (at = end)));
    return { shape, values: values instanceof Float32Array ? Float64Array.from(values) : values };
  });
  return answers.map(({ facts, python, arrays }) => ({ facts, python, arrays: Object.fromEntries(Object.entries(arrays).map(([name, n]) => [name, numbers[n]!])) }));
}

/** Numbers of that shape, one axis unless it is given. */
export function real(values: ArrayLike<number>, ...shape: number[]): Numbers {
  return { shape: shape.length ? shape : [values.length], values: values instanceof Float64Array ? values : Float64Array.from(values) };
}

export function whole(values: ArrayLike<number>, ...shape: number[]): Numbers {
  return { shape: shape.length ? shape : [values.length], values: Int32Array.from(values) };
}

/** Rows of matrices, of any number of matrices of matrices, one after the other. */
export function stacked(rows: Nested): Numbers {
  const shape: number[] = [];
  const flat: Float64Array[] = [];
  const go = (one: Nested, depth: number): void => {
    shape[depth] = one.length;
    if (one instanceof Float64Array) flat.push(one);
    else for (const next of one) go(next, depth + 1);
  };
  go(rows, 0);
  const values = new Float64Array(shape.reduce((a, b) => a * b, 1));
  flat.forEach((one, n) => values.set(one, n * one.length));
  return { shape, values };
}

type Nested = Float64Array | Nested[];

/** The array of that name; throws if it is missing, which is a bug. */
export function array(data: Data, name: string): Numbers {
  const found = data.arrays[name];
  if (!found) throw new Error(`no array ${name}; there are ${Object.keys(data.arrays).join(", ")}`);
  return found;
}

/** One row of a matrix, or of the last axis; a view, not a copy. */
export function row(numbers: Numbers, index: number): Float64Array | Int32Array {
  const width = numbers.shape[numbers.shape.length - 1]!;
  return numbers.values.subarray(index * width, (index + 1) * width);
}
