// Asks the models: in a worker, so that the page moves meanwhile; in the page itself where a browser has or allows none.

import worker from "worker-code";
import { opened, type Question, type Reading } from "./reading";
import type { In, Out } from "./worker";

export interface Asking {
  each(reading: Reading): void;
  signal: AbortSignal | undefined;
}

export type Ask = (question: Question, asking: Asking) => Promise<Reading>;

export async function asker(file: ArrayBuffer): Promise<Ask> {
  if (typeof Worker === "undefined") return here(file);
  return inWorker(file).catch(() => here(file));
}

async function inWorker(file: ArrayBuffer): Promise<Ask> {
  const works = new Worker(URL.createObjectURL(new Blob([worker], { type: "text/javascript" })));
  const send = (message: In) => works.postMessage(message);
  /** Resolves with the last reading of a question. */
  const heard = (id: number, { each, signal }: Asking) => new Promise<Reading>((done, failed) => {
    const over = new AbortController();
    const end = (then: () => void) => {
      over.abort();
      then();
    };
    const until = { signal: over.signal };
    let last: Reading;
    works.addEventListener("message", ({ data }: MessageEvent<Out>) => {
      if (data.id !== id) return;
      if (data.reading) each((last = data.reading));
      if (data.done) end(() => done(last));
      if (data.failed) end(() => failed(new Error(data.failed)));
    }, until);
    works.addEventListener("error", ({ message }) => end(() => failed(new Error(message))), until);
    signal?.addEventListener("abort", () => end(() => failed(new Error("another question was asked"))), until);
  });
  send({ file });
  await heard(0, { each() {}, signal: undefined });
  let count = 0;
  return (question, asking) => {
    const answer = heard(++count, asking);
    send({ id: count, question });
    return answer;
  };
}

async function here(file: ArrayBuffer): Promise<Ask> {
  const readings = await opened(file);
  return async (question, { each, signal }) => {
    let last: Reading | undefined;
    for (const reading of readings(question)) {
      each((last = reading));
      await new Promise((done) => setTimeout(done));
      signal?.throwIfAborted();
    }
    return last!;
  };
}
