// The start page: the scene, and the views by the steps that lead to them.

import { h, type Child } from "./dom";
import { openView, type Frame, type Opened, type Parts } from "./opened";
import { SCENE, thumbnails } from "./scene";
import { stepAddress, STEPS, stepOf } from "./steps";
import type { View } from "./view";
import { VIEWS } from "all-views";
import { both, firstSentence, phrased } from "./words";

export function start(main: HTMLElement, frame: Frame): Opened {
  const { t } = frame;
  const small = thumbnails();
  const cards = STEPS.map(({ name, title }, index) => h("a", { class: "thumbnail", href: stepAddress(name) }, small.elements[index]!, h("h3", {}, `${index + 1}. `, phrased(t(title)))));
  const view: View = {
    ...SCENE,
    build(stage) {
      const draw = SCENE.build(stage);
      return (data, state) => {
        draw(data, state);
        small.draw(data, state);
        cards.forEach((card, index) => (card.href = stepAddress(STEPS[index]!.name, String(state["sentence"]))));
      };
    },
  };
  const links = (views: View[]) => h("ul", {}, ...views.map(({ name, title, idea }) => h("li", {}, h("a", { href: `#/${name}` }, phrased(t(title))), h("p", {}, firstSentence(t(idea))))));
  const arranged = ({ controls, trouble, stage, exported, code, take }: Parts): Child[] => [h("div", { class: "start" },
    h("h1", {}, phrased(t(view.title))), h("p", { class: "lead" }, t(view.idea)), controls, trouble, stage, exported, h("p", { class: "onward" }, take),
    h("section", { class: "all-views" }, h("h2", {}, t(both("All views", "全部视图"))), links(VIEWS.filter(({ name }) => !stepOf(name))),
      ...STEPS.map((step, index) => h("section", { class: "of-step" }, cards[index]!, links(VIEWS.filter(({ name }) => step.views.includes(name)))))),
    code)];
  return openView(view, main, frame, arranged);
}
