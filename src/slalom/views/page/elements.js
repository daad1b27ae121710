// Making elements: HTML and SVG. Text goes in as text, never as markup.
(function (slalom) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  const furnish = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity))
      if (child !== null && child !== undefined && child !== false) node.append(child);
    return node;
  };

  slalom.element = (tag, attributes = {}, ...children) =>
    furnish(document.createElement(tag), attributes, children);
  slalom.drawn = (tag, attributes = {}, ...children) =>
    furnish(document.createElementNS(SVG, tag), attributes, children);

  // Buttons of which one is pressed, as radio buttons, so that arrow keys work.
  let groups = 0;
  slalom.choice = (legend, options, chosen, change) => {
    const name = `slalom-choice-${(groups += 1)}`;
    const inputs = options.map(([value, title, says]) =>
      slalom.element(
        "label",
        { title: says },
        slalom.element("input", { type: "radio", name, value, checked: value === chosen, change: () => change(value) }),
        slalom.element("span", {}, title),
      ),
    );
    return slalom.element("fieldset", {}, slalom.element("legend", {}, legend), inputs);
  };
})((window.slalom = window.slalom || {}));
