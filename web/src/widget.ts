// The page in a notebook: numbers from its kernel.

import { privateAddress } from "./address";
import { mount } from "./app";
import { unpack, type Data } from "./data";
import type { Source } from "./source";

interface Model {
  get(name: string): any;
  on(event: string, listener: (content: any, buffers: DataView[]) => void): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
}

function kernel(model: Model): Source {
  const asked = new Map<number, { done(data: Data): void; failed(error: Error): void }>();
  let count = 0;
  model.on("msg:custom", (content, buffers) => {
    const one = asked.get(content.id);
    asked.delete(content.id);
    if (!one) return;
    if (content.error) one.failed(new Error(content.error));
    else {
      const view = buffers[0]!;
      one.done(unpack(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) as ArrayBuffer));
    }
  });
  const question = (content: object, buffers?: ArrayBuffer[]) =>
    new Promise<Data>((done, failed) => {
      asked.set(++count, { done, failed });
      model.send({ id: count, ...content }, undefined, buffers);
    });
  return {
    ...model.get("about"),
    offered: () => null,
    ask: (view, parameters) => question({ view, parameters }),
    upload: (view, contents) => question({ upload: view }, [contents]),
  };
}

export default {
  render({ model, el }: { model: Model; el: HTMLElement }) {
    el.dataset["lmSuppressShortcuts"] = "true"; // JupyterLab leaves the keys to what has the focus
    const root = el.attachShadow({ mode: "open" });
    return mount(root, { source: kernel(model), address: privateAddress(model.get("address")), language: model.get("language") });
  },
};
