// To be written.

import type { View } from "../view";
import { both } from "../words";

export const layouts: View = {
  name: "layouts",
  title: both("Two layouts of RoPE", "RoPE 的两种排布"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
