// In: the file of the models, then questions, each with a number. Out: readings, as they grow, and that they are complete; 0 says
// that the models are there. A newer question ends an older one.

import { opened, type Question, type Reading, type Readings } from "./reading";

export type In = { file: ArrayBuffer } | { id: number; question: Question };
export type Out = { id: number; reading?: Reading; done?: true; failed?: string };

let readings: Promise<Readings>;
let asked = 0;

const channel = new MessageChannel();
/** Lets messages in. */
const turn = () => new Promise<void>((done) => {
  channel.port1.onmessage = () => done();
  channel.port2.postMessage(null);
});
const send = (out: Out) => (postMessage as (message: Out) => void)(out);

onmessage = async ({ data }: MessageEvent<In>) => {
  if ("file" in data) {
    readings = opened(data.file);
    return void readings.then(() => send({ id: 0, done: true }), (error) => send({ id: 0, failed: String(error) }));
  }
  const { id, question } = data;
  asked = id;
  try {
    for (const reading of (await readings)(question)) {
      if (asked !== id) return;
      send({ id, reading });
      await turn();
    }
    send({ id, done: true });
  } catch (error) {
    send({ id, failed: String(error) });
  }
};
