// Words that act together: arcs over the text between the two, and the same as a list.
(function (slalom) {
  "use strict";
  const { element, drawn, number } = slalom;
  const [THIN, THICK] = [1.5, 4.5];
  const [LOW, HIGH, LEANING] = [9, 17, 16]; // how far an arc rises above its words, in pixels
  const NONE = "No two words act together: their effects add up.";
  const MEANING = "The first number is the interaction: the effect of both words together minus the sum of their separate effects. Blue: they add more together than separately; orange: less.";

  const size = ({ together, apart }) => together - apart;
  const side = (pair) => (size(pair) > 0 ? "for" : "against");
  const asked = ({ measured, n_queries }) =>
    measured ? ` Measured with ${n_queries} more queries.` : " Estimated by the surrogate; the classifier was not queried.";

  // From the top of one word to the top of the other, or down to a later line.
  const curve = (from, to) => {
    const [x, u] = [from, to].map((box) => box.left + box.width / 2);
    if (Math.abs(from.top - to.top) < from.height / 2) {
      const up = Math.min(HIGH, LOW + Math.abs(u - x) / 30);
      return `M${x} ${from.top}C${x} ${from.top - up} ${u} ${to.top - up} ${u} ${to.top}`;
    }
    const [upper, lower] = from.top < to.top ? [from, to] : [to, from];
    const [a, b] = [upper, lower].map((box) => box.left + box.width / 2);
    return `M${a} ${upper.bottom}C${a} ${upper.bottom + LEANING} ${b} ${lower.top - LEANING} ${b} ${lower.top}`;
  };

  // `stage` is the figure with the text; `found` what e.interactions found, as JSON.
  const draw = (stage, found) => {
    const origin = stage.getBoundingClientRect();
    const largest = Math.max(...found.pairs.map((pair) => Math.abs(size(pair))), 1e-9);
    const box = (unit, last) => {
      const boxes = stage.querySelector(`.w[data-unit="${unit}"]`)?.getClientRects() ?? [];
      const one = boxes[last ? boxes.length - 1 : 0];
      return one && new DOMRect(one.left - origin.left - stage.clientLeft, one.top - origin.top - stage.clientTop, one.width, one.height);
    };
    const arcs = found.pairs.map((pair, at) => {
      const [from, to] = [box(pair.units[0], true), box(pair.units[1], false)];
      if (!from || !to) return null;
      const width = THIN + (THICK - THIN) * (Math.abs(size(pair)) / largest);
      return drawn("path", { class: `arc ${side(pair)}`, "data-pair": at, d: curve(from, to), "stroke-width": width.toFixed(1) });
    });
    stage.querySelector(".arcs")?.remove();
    stage.append(drawn("svg", { class: "arcs", "aria-hidden": "true", width: stage.clientWidth, height: stage.clientHeight }, arcs));
  };

  const list = (record, point) => {
    const label = (unit) => {
      const { label: name, more } = record.rows.find(({ units }) => units.includes(unit));
      return more.startsWith(" (") ? name + more : name; // which of several
    };
    const line = (pair, at) =>
      element(
        "li",
        { class: side(pair), "data-pair": at },
        element(
          "button",
          { type: "button", pointerenter: () => point(at), pointerleave: () => point(null), focus: () => point(at), blur: () => point(null), click: () => point(at) },
          element("b", {}, label(pair.units[0])), " × ", element("b", {}, label(pair.units[1])),
        ),
        element("span", {}, `${number(size(pair)).trim()} (together ${number(pair.together).trim()}, separately ${number(pair.apart).trim()})`),
      );
    return element("ol", {}, record.pairs.pairs.map(line));
  };

  // Arcs and list, kept up to date; `ask` fetches the pairs if they have not been looked for.
  slalom.arcs = (record, stage, ask) => {
    const root = element("section", { class: "pairs", "aria-label": "Words that act together" });
    const status = element("p", { class: "small", role: "status" });
    const point = (at) => {
      stage.classList.toggle("pointed", at !== null);
      stage.querySelectorAll(".arc, .pairs li, .w.on").forEach((node) => node.classList.toggle("on", at !== null && node.dataset.pair === String(at)));
      if (at === null) return;
      const units = new Set(record.pairs.pairs[at].units.map(String));
      stage.querySelectorAll(".w").forEach((word) => units.has(word.dataset.unit) && word.classList.add("on"));
    };
    const find = async () => {
      button.disabled = true;
      status.replaceChildren("querying the classifier about pairs of words …");
      try {
        record.pairs = await ask();
        show();
      } catch (problem) {
        status.replaceChildren(problem.message);
      } finally {
        button.disabled = false;
      }
    };
    const button = element("button", { type: "button", class: "find", click: find }, "find words that act together");

    const show = () => {
      const found = record.pairs;
      if (!found) return root.replaceChildren(button, status);
      status.replaceChildren(found.pairs.length ? MEANING + asked(found) : NONE + asked(found));
      root.replaceChildren(element("h3", {}, "words that act together"), list(record, point), status);
      redraw();
    };
    const redraw = () => {
      const some = (record.pairs?.pairs.length ?? 0) > 0;
      stage.classList.toggle("paired", some);
      if (some) draw(stage, record.pairs);
    };
    // Highlight the arcs of a word.
    const touch = (row) => {
      const units = row === null ? [] : record.rows[row].units;
      stage.querySelectorAll(".arc").forEach((arc) => arc.classList.toggle("on", record.pairs.pairs[arc.dataset.pair].units.some((unit) => units.includes(unit))));
    };
    if (!record.pairs && (!ask || record.classes.length > 1)) return null;
    show();
    return { root, redraw, touch };
  };
})((window.slalom = window.slalom || {}));
