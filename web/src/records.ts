// Files of the package that the page computes from: trained weights, measured curves. An exported file holds each in a script
// element of its name, which nothing reads before a view asks for it (explorer/packed.py).

export type Records = (name: string) => Promise<ArrayBuffer>;

declare global {
  /** Of the exported file: what an element holds. */
  var posencRecord: Records;
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
