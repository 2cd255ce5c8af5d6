
// Any step of any encoding's attention: the page itself holds the last step of one.
addEventListener("DOMContentLoaded", () => {
  for (const looks of document.querySelectorAll(".looks")) {
    const data = JSON.parse(looks.querySelector("script").textContent);
    const controls = looks.querySelector(".controls"), heads = looks.querySelector(".heads");
    const choice = controls.querySelector("select"), slider = controls.querySelector("input"), output = controls.querySelector("output");
    const curves = heads.querySelectorAll("path.curve"), image = looks.querySelector("img");
    const draw = () => {
      const arm = data.arms[choice.value], n = Number(slider.value), step = data.steps[n];
      curves.forEach((curve, panel) => {
        const corners = arm.y[n][panel].flatMap((y, at) => (y < 0 ? [] : [`${arm.x[at] / 10} ${y / 10}`]));
        curve.setAttribute("d", corners.length ? `M${corners.join(" L")}` : "");
      });
      heads.className = `heads ${arm.kind}`;
      output.textContent = step;
      slider.setAttribute("aria-valuetext", step);
      if (image && data.similarity) {
        const known = data.similarity.steps.filter((one) => one <= step).length;
        image.src = data.similarity.images[Math.max(known - 1, 0)];
        image.alt = image.alt.replace(/\d+/g, data.similarity.steps[Math.max(known - 1, 0)]);
      }
    };
    choice.addEventListener("change", draw);
    slider.addEventListener("input", draw);
    controls.hidden = false;
    draw();
  }
});
