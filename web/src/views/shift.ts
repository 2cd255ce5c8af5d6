// To be written.

import type { View } from "../view";
import { both } from "../words";

export const shift: View = {
  name: "shift",
  title: both("A shift is a rotation", "平移就是旋转"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
