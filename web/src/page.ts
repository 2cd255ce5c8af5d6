// The page as a whole window, with numbers from the server or from the file itself; and as a widget, for a notebook that
// imports it.

import { browserAddress, privateAddress } from "./address";
import { mount } from "./app";
import { embedded, server } from "./source";

export { default } from "./widget";

const about = document.getElementById("posenc-about");
if (about) whole(JSON.parse(about.textContent!));

function whole(about: any): void {
  let store: Storage | undefined;
  try {
    store = localStorage;
  } catch {
    // The browser refuses storage, so settings are not kept.
  }
  // In a notebook's frame (srcdoc) there is no address that could be changed.
  const framed = location.protocol === "about:";
  if (!framed && about.address && location.hash.length < 3) history.replaceState(null, "", `#/${about.address}`);
  const address = framed ? privateAddress(`/${about.address}`) : browserAddress();
  mount(document.body, { source: about.live ? server(about) : embedded(about), address, store, language: about.language ?? (navigator.language.startsWith("zh") ? "zh" : "en") });
}
