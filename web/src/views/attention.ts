// To be written.

import type { View } from "../view";
import { both } from "../words";

export const attention: View = {
  name: "attention",
  title: both("Attention, step by step", "注意力，一步一步"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
