// Programs that views print, from the files that Python reads too (explorer/template.py): views/shift.txt.
//
//   $base    a value                #: rope   begins a part that is printed only where it is named; "#:" alone ends it

/** `values` are written as they are, but for whole numbers and truth values. */
export function program(template: string, parts: string[], values: Record<string, string | number | boolean>): string {
  const [first, ...rest] = template.split(/^#: ?(.*)\n/m);
  const named = rest.flatMap((name, n) => (n % 2 ? [] : [{ name, lines: rest[n + 1]! }]));
  const chosen = first + named.filter(({ name }) => ["", ...parts].includes(name)).map(({ lines }) => lines).join("");
  return chosen.trimEnd().replace(/\$(\w+)/g, (_, name: string) => written(values[name]!));
}

function written(value: string | number | boolean): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return String(value);
}

/** repr(x) of a Python float: 10000.0, 1e-05, 1e+16. */
export function float(x: number): string {
  const [digits, power] = x.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const text = exponent < 0 ? x.toFixed(digits.replace(/\D/g, "").length - 1 - exponent) : String(x);
  return text.includes(".") ? text : `${text}.0`;
}

/** f"{x:.6g}" of Python, with other numbers of digits too. */
export function general(x: number, digits = 6): string {
  const [shown, power] = x.toExponential(digits - 1).split("e") as [string, string];
  const exponent = Number(power);
  const tidy = (text: string) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent < -4 || exponent >= digits) return `${tidy(shown)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return tidy(x.toFixed(Math.max(digits - 1 - exponent, 0)));
}

/** repr(words) of a Python tuple with two words or more. */
export function tuple(words: string[]): string {
  return `(${words.map(quoted).join(", ")})`;
}

const ESCAPED: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** repr(text): what cannot be printed is written as its number. */
export function quoted(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replace(/[\\\p{C}\p{Z}]/gu, (letter) => {
    if (letter === " ") return letter;
    if (letter in ESCAPED) return ESCAPED[letter]!;
    const code = letter.codePointAt(0)!;
    const [sign, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${sign}${code.toString(16).padStart(digits as number, "0")}`;
  });
  return mark + (mark === "'" ? inside.replaceAll("'", "\\'") : inside) + mark;
}
