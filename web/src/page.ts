// The page as a whole window: numbers from the server, or from the file itself.

import { browserAddress, privateAddress } from "./address";
import { mount } from "./app";
import { embedded, server } from "./source";

const about = JSON.parse(document.getElementById("about")!.textContent!);
let store: Storage | undefined;
try {
  store = localStorage;
} catch {
  // Refused by the browser: nothing is remembered.
}
// In a notebook's frame (srcdoc) there is no address that could be changed.
const framed = location.protocol === "about:";
if (!framed && about.address && location.hash.length < 3) history.replaceState(null, "", `#/${about.address}`);
const address = framed ? privateAddress(`/${about.address}`) : browserAddress();
mount(document.body, { source: about.live ? server(about) : embedded(about), address, store, language: about.language ?? (navigator.language.startsWith("zh") ? "zh" : "en") });
