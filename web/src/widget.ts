// The page in a notebook: numbers from its kernel.

import { privateAddress } from "./address";
import { mount } from "./app";
import { unpack, type Data } from "./data";
import { ALL, refusal, type Source, type State } from "./source";

interface Model {
  get(name: string): any;
  on(event: string, listener: (content: any, buffers: DataView[]) => void): void;
  off(event: string, listener: () => void): void;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
}

function kernel(model: Model): Source {
  const asked = new Map<number, { done(data: Data): void; failed(error: Error): void }>();
  let count = 0;
  model.on("msg:custom", (content, buffers) => {
    const one = asked.get(content.id);
    asked.delete(content.id);
    if (!one) return;
    if (content.error) one.failed(refusal(content));
    else {
      const view = buffers[0]!;
      one.done(unpack(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) as ArrayBuffer));
    }
  });
  return {
    ...model.get("about"),
    ...ALL,
    own: () => false,
    ask: (view, parameters) =>
      new Promise<Data>((done, failed) => {
        asked.set(++count, { done, failed });
        model.send({ id: count, view, parameters });
      }),
  };
}

export default {
  render({ model, el }: { model: Model; el: HTMLElement }) {
    el.dataset["lmSuppressShortcuts"] = "true"; // JupyterLab leaves the keys to what has the focus
    const root = el.attachShadow({ mode: "open" });
    const address = privateAddress(model.get("address"));
    // The kernel knows what is shown: value the state of the view, address what follows #/ in a link to it.
    const drawn = (view: string, state: State) => {
      model.set("value", { view, ...state });
      model.set("address", address.read());
      model.save_changes();
    };
    // And may change it: explorer.address = "/table?p=7".
    const changed = () => model.get("address") !== address.read() && address.go(model.get("address"));
    model.on("change:address", changed);
    const leave = mount(root, { source: kernel(model), address, language: model.get("language"), drawn });
    return () => {
      model.off("change:address", changed);
      leave();
    };
  },
};
