// The widget of kvscope.stepper: a slider, arrow keys, and clicks on blocks. Python draws; this file only reports what
// was asked for. anywidget calls render() with the widget's model: step, steps, selection, picture (SVG) and words.
function render({ model, el }) {
  const slider = document.createElement("input");
  slider.type = "range";
  slider.min = 0;
  slider.style.width = "60%";
  slider.setAttribute("aria-label", "step");
  const label = document.createElement("span");
  label.style.margin = "0 1em";
  const words = document.createElement("span");
  words.style.display = "block"; // a line of its own, so that the picture does not move
  words.style.margin = "0.3em 0";
  const bar = document.createElement("div");
  bar.append(slider, label, words);
  const picture = document.createElement("div");
  picture.tabIndex = 0; // takes the arrow keys
  el.append(bar, picture);

  const go = (step) => {
    const last = model.get("steps") - 1;
    model.set("step", Math.max(0, Math.min(last, step)));
    model.save_changes();
  };
  const keys = {
    ArrowRight: () => go(model.get("step") + 1),
    ArrowLeft: () => go(model.get("step") - 1),
    Home: () => go(0),
    End: () => go(model.get("steps") - 1),
    Escape: () => select(""),
  };
  const select = (selection) => {
    model.set("selection", selection);
    model.save_changes();
  };
  const onKey = (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has arrow keys too
    keys[event.key]();
  };
  const onClick = (event) => {
    const shape = event.target.closest("[data-select]");
    select(shape && shape.dataset.select !== model.get("selection") ? shape.dataset.select : "");
    picture.focus({ preventScroll: true });
  };
  const onSlide = () => go(Number(slider.value));
  const update = () => {
    slider.max = model.get("steps") - 1;
    slider.value = model.get("step");
    label.textContent = `step ${model.get("step")} of ${model.get("steps") - 1}`;
    words.textContent = model.get("words");
    picture.innerHTML = model.get("picture"); // made by kvscope, with all text escaped
  };
  slider.addEventListener("input", onSlide);
  slider.addEventListener("keydown", onKey); // JupyterLab takes the keys of a slider otherwise
  picture.addEventListener("keydown", onKey);
  picture.addEventListener("click", onClick);
  model.on("change", update);
  update();
  return () => model.off("change", update);
}

export default { render };
