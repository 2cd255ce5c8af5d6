// Files of the package that the page computes from: trained weights, measured curves. An exported file holds each in a script
// element of its name, gzip in base64 (explorer/export.py), which nothing reads before a view asks for it.

export type Records = (name: string) => Promise<ArrayBuffer>;

export const inDocument: Records = async (name) => {
  const text = document.getElementById(name)?.textContent;
  if (!text) throw new Error(`this file has no ${name}`);
  return gunzip(text);
};

/** The bytes of a gzip stream in base64. */
export function gunzip(base64: string): Promise<ArrayBuffer> {
  return inflated(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)), "gzip");
}

export function inflated(bytes: Uint8Array<ArrayBuffer>, format: CompressionFormat): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format))).arrayBuffer();
}

/** What a view makes of a record, once. */
export function once<Made>(name: string, make: (bytes: ArrayBuffer) => Promise<Made>): (records: Records) => Promise<Made> {
  let made: Promise<Made> | undefined;
  return (records) => {
    made ??= records(name).then(make);
    made.catch(() => (made = undefined)); // the next question tries again
    return made;
  };
}
