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
mount(document.body, { source: about.live ? server(about) : embedded(about), address: browserAddress(), store, language: navigator.language.startsWith("zh") ? "zh" : "en" });
