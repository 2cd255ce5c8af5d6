// The page as a whole window: numbers from the server, or from the file itself.

import { browserAddress } from "./address";
import { mount } from "./app";
import { embedded, server } from "./source";

const about = JSON.parse(document.getElementById("about")!.textContent!);
let store: Storage | undefined;
try {
  store = localStorage;
} catch {
  // Refused by the browser: nothing is remembered.
}
if (about.address && location.hash.length < 3) history.replaceState(null, "", `#/${about.address}`);
mount(document.body, { source: about.live ? server(about) : embedded(about), address: browserAddress(), store, language: about.language ?? (navigator.language.startsWith("zh") ? "zh" : "en") });
