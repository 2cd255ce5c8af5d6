// To be written.

import type { View } from "../view";
import { both } from "../words";

export const paths: View = {
  name: "paths",
  title: both("Paths of positions", "位置走过的路"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
