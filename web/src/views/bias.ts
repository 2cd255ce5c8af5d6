// To be written.

import type { View } from "../view";
import { both } from "../words";

export const bias: View = {
  name: "bias",
  title: both("A bias for every distance", "给每个距离一个偏置"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
