// To be written.

import type { View } from "../view";
import { both } from "../words";

export const similarity: View = {
  name: "similarity",
  title: both("Near and far", "近与远"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
