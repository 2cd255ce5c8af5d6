// To be written.

import type { View } from "../view";
import { both } from "../words";

export const rotaryPair: View = {
  name: "rotary_pair",
  title: both("RoPE: only the difference counts", "RoPE：只有距离之差起作用"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
