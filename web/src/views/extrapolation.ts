// To be written.

import type { View } from "../view";
import { both } from "../words";

export const extrapolation: View = {
  name: "extrapolation",
  title: both("Beyond the trained length", "超出训练长度"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
