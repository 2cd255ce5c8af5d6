// To be written.

import type { View } from "../view";
import { both } from "../words";

export const wavelengths: View = {
  name: "wavelengths",
  title: both("What 10000 does", "10000 起什么作用"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
