// Puts the parts together, links them, and handles pointer and keyboard.
(function (slalom) {
  "use strict";
  const { element } = slalom;
  const N_CLASSES = 6; // whose probabilities are shown
  const listening = new WeakMap();

  // One class of a record by one score, as all parts read it.
  const viewOf = (record, { by, shown, scale }) => {
    const told = record.classes[shown];
    const points = scale === "probability" ? told.points : null;
    const scaled = (name) => points !== null && name in points.scores;
    const digitsOf = (column) => (scaled(column.name) ? 1 : column.digits);
    const found = record.scores.find(({ name }) => name === by);
    const column = { ...found, digits: digitsOf(found) };
    const of = (name, row) => (scaled(name) ? points : told).scores[name][row];
    const errorOf = (name, row) => (scaled(name) ? points : told).errors[name]?.[row];
    const measuredOf = (name, row) => told.measured[name]?.[row] ?? false;
    const strength = (row) => told.strengths[by][row];
    const order = record.rows.map((_, row) => row);
    const clear = (row) => Number(Math.abs(strength(row)) > 0);
    const size = (row) => (column.sided ? Math.abs(of(by, row)) : Math.abs(strength(row)));
    order.sort((a, b) => clear(b) - clear(a) || record.rows[b].identified - record.rows[a].identified || size(b) - size(a));
    return {
      ...{ digitsOf, inPoints: scaled(by), column, order, strength, of, errorOf, measuredOf, label: told.label, sided: column.sided },
      ...{ bridge: told.bridge, context: told.context, attention: told.attention, anchor: told.anchor, length: told.length, lengthErrors: told.length_errors },
      has: (name) => name in told.scores,
      score: (row) => of(by, row),
      error: (row) => errorOf(by, row),
      measured: (row) => measuredOf(by, row),
      measuredAny: told.measured[by]?.some(Boolean) ?? false,
    };
  };

  const probabilities = (record) =>
    record.probabilities.length > 0 &&
    element(
      "ul",
      { class: "classes", "aria-label": "What the classifier says" },
      record.probabilities.slice(0, N_CLASSES).map(({ label, share, told }) => {
        const bar = element("span", { class: "meter" }, element("span"));
        bar.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
        return element("li", {}, element("span", { title: label }, label), bar, element("span", {}, told));
      }),
      record.probabilities.length > N_CLASSES && element("li", { class: "small" }, `and ${record.probabilities.length - N_CLASSES} less likely`),
    );

  const trust = ({ word, share, lines }) => {
    const meter = share !== null && element("span", { class: "meter" }, element("span"));
    if (meter) meter.firstChild.style.width = `${(100 * share).toFixed(0)}%`;
    return element(
      "div",
      { class: `trust ${word}` },
      element("p", {}, element("b", {}, `Trust: ${word}`), meter),
      element("ul", {}, lines.map((line) => element("li", {}, slalom.unbroken(line)))),
    );
  };

  const heading = (record, slots, level) =>
    element(
      "header",
      {},
      element(
        "div",
        { class: "verdict" },
        (slots.sentence = element(level, { class: "sentence" })),
        element(
          "p",
          { class: "small" },
          `${record.classifier} · method ${record.method} · scores: ${record.explained.measure}`,
          record.explained.label && [" of ", element("b", {}, record.explained.label)],
        ),
        probabilities(record),
      ),
      trust(record.trust),
    );

  const CAPTIONS = {
    bars: (record, view) =>
      [
        view.inPoints ? `Changes of the probability of ${view.label}, in percentage points. ` : "",
        view.order.some((row) => view.error(row) > 0) ? "Lines: 90 % intervals; ±: standard errors. " : "",
        view.order.every((row) => view.error(row) === undefined) && !view.measuredAny ? "Standard errors of these scores are not known. " : "",
        view.measuredAny ? "Full bars without a line were measured on the classifier itself." : "",
      ].join(""),
    bridge: (record, view) =>
      [
        `The Shapley values, one step each, from the empty text to the classifier’s answer, in ${record.explained.measure}${record.percent && !record.competing ? " and as probabilities" : ""}.`,
        view.bridge.some(({ kind }) => kind === "open") ? " Unexplained: what these values do not account for." : "",
      ].join(""),
    plane: slalom.planeCaption,
    context: slalom.contextCaption,
  };

  slalom.show = (root, record, options = {}) => {
    const state = { by: record.by, shown: record.shown, tab: "bars", scale: record.scale ?? "log-odds", all: false, advanced: false, ...options.state };
    if (!record.scores.some(({ name }) => name === state.by)) state.by = record.by;
    if (!record.classes[state.shown]) state.shown = record.shown;
    const removed = options.removed ?? new Set();
    const slots = {};
    let view = viewOf(record, state);
    let pinned = null;
    let arcs = null;
    let width = 0;
    const tip = element("div", { class: "tip", role: "status", hidden: true });
    const tabs = [
      ["bars", record.units],
      ...(slalom.hasPlane(view) && !record.two_scores.little ? [["plane", "two scores"]] : []),
      ...(record.classes.some(({ bridge }) => bridge.length) ? [["bridge", "step by step"]] : []),
      ...(record.classes.some(({ context }) => context) ? [["context", "in context"]] : []),
      ...(slalom.hasPlane(view) && record.two_scores.little ? [["plane", "two scores"]] : []),
    ];
    if (!tabs.some(([name]) => name === state.tab)) state.tab = "bars";

    const change = (part) => {
      Object.assign(state, part);
      draw();
      options.onState?.({ ...state });
    };

    const controls = () =>
      element(
        "form",
        { class: "controls", autocomplete: "off", submit: (event) => event.preventDefault() },
        slalom.choice("show", record.scores.filter(({ advanced }) => !advanced).map(({ name, title, says }) => [name, title, `${name}: ${says}`]), state.by, (by) => change({ by })),
        record.classes.length > 1 &&
          element(
            "label",
            {},
            "of class ",
            element("select", { change: (event) => change({ shown: +event.target.value }) }, record.classes.map(({ label }, at) => element("option", { value: at, selected: at === state.shown }, label))),
          ),
        record.classes.some(({ points }) => points !== null) &&
          slalom.choice("in", [["log-odds", "log-odds", "scores as log-odds"], ["probability", "probability", "scores as changes of the probability, in percentage points"]], state.scale, (scale) => change({ scale })),
      );

    const save = (kind) => {
      const chart = slots.chart.querySelector("svg");
      if (chart) slalom[kind](chart, `slalom-${tabs.find(([name]) => name === state.tab)[1].replaceAll(" ", "-")}`);
    };

    const chart = () => {
      width = Math.max(260, Math.floor(slots.chart.clientWidth || 560));
      const drawnChart = slalom[state.tab](record, view, width, state.all);
      const more = state.tab === "bars" && view.order.length > slalom.N_BARS;
      slots.chart.replaceChildren(
        drawnChart,
        ...(more ? [element("button", { type: "button", class: "more", click: () => change({ all: !state.all }) }, state.all ? "show fewer" : `show all ${view.order.length}`)] : []),
        ...(state.tab === "bridge" && slalom.mattersHere(view.length)
          ? [element("p", { class: "small" }, slalom.unbroken(`The part of the score that depends on length alone, shared equally by these values${view.lengthErrors ? " (band: 90 % intervals)" : ""}:`)), slalom.length(view.length, view.lengthErrors, width)]
          : []),
        element("figcaption", {}, slalom.unbroken(CAPTIONS[state.tab](record, view))),
      );
    };

    const draw = () => {
      view = viewOf(record, state);
      slots.sentence.replaceChildren(...slalom.sentence(record.classes[state.shown].sentence));
      slots.text.replaceChildren(...slalom.text(record, view, removed), slalom.legend(record, view));
      words().forEach((word, n) => {
        word.tabIndex = n ? -1 : 0;
        word.setAttribute("role", "button");
        word.setAttribute("aria-pressed", removed.has(+word.dataset.unit));
      });
      if (arcs) (slots.text.append(arcs.root), arcs.redraw());
      slots.table.replaceChildren(slalom.table(record, view, state.advanced));
      slots.anchor.replaceChildren(...(state.advanced && view.anchor ? [slalom.anchorLine(view)] : []));
      chart();
    };

    const words = () => [...slots.text.querySelectorAll(".w")];
    const linked = (row) => root.querySelectorAll(`[data-row="${row}"]`);
    const point = (target) => {
      root.querySelectorAll(".on").forEach((node) => node.classList.remove("on"));
      arcs?.touch(target ? +target.dataset.row : null);
      if (!target) return void (tip.hidden = true);
      const row = target.dataset.row;
      linked(row).forEach((node) => node.classList.add("on"));
      slalom.card(tip, record, view, +row, target.querySelector("circle,th,.name") ?? target);
    };
    const pin = (target) => point((pinned = pinned === target ? null : target));
    const near = (event) => event.target.closest?.("[data-row]");
    const press = (target) => {
      if (options.onWord && target.classList.contains("w")) options.onWord(+target.dataset.unit);
      else pin(target);
    };

    const step = (word, by) => {
      const all = words();
      const next = all[all.indexOf(word) + by];
      if (!next) return;
      word.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    };
    const events = {
      pointerover: (event) => point(near(event) ?? pinned),
      pointerleave: () => point(pinned),
      focusin: (event) => near(event) && point(near(event)),
      focusout: () => point(pinned),
      click: (event) => near(event) && press(near(event)),
      keydown: (event) => {
        const word = event.target.closest?.(".w");
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") point((pinned = null));
        else if (word && by) step(word, by);
        else if (word && (event.key === "Enter" || event.key === " ")) press(word);
        else return;
        if (word) event.preventDefault();
      },
    };

    const advanced = record.scores.some((column) => column.advanced);
    root.replaceChildren(
      heading(record, slots, options.heading ?? "h2"),
      controls(),
      element(
        "div",
        { class: "panes" },
        element("div", { class: "column" }, (slots.text = element("figure", { class: "reading" })), options.beneath),
        element(
          "figure",
          {},
          element(
            "div",
            { class: "bar" },
            tabs.length > 1 && slalom.choice("as", tabs, state.tab, (tab) => change({ tab })),
            element("span", { class: "save" }, "save as ", element("button", { type: "button", click: () => save("saveSvg") }, "SVG"), " ", element("button", { type: "button", click: () => save("savePng") }, "PNG")),
          ),
          (slots.chart = element("div", { class: "canvas" })),
        ),
      ),
      element(
        "details",
        {},
        element("summary", {}, record.heading),
        (slots.table = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All scores" })),
        advanced && element("label", { class: "advanced" }, element("input", { type: "checkbox", change: (event) => change({ advanced: event.target.checked }) }), " also show linearised (the paper’s single score)"),
        (slots.anchor = element("div")),
      ),
      element("footer", {}, record.notes.length > 0 && element("ul", {}, record.notes.map((note) => element("li", {}, note))), element("p", {}, record.facts.join(" · "))),
      tip,
    );
    root.classList.add("ready");
    listening.get(root)?.abort(); // one set of listeners, however often something is shown here
    listening.set(root, new AbortController());
    const { signal } = listening.get(root);
    for (const [name, answer] of Object.entries(events)) root.addEventListener(name, answer, { signal });
    arcs = slalom.arcs(record, slots.text, options.pairs);
    draw();
    const resized = new ResizeObserver(() => {
      arcs?.redraw();
      if (Math.abs(slots.chart.clientWidth - width) > 2 && slots.chart.clientWidth > 0) chart();
    });
    [slots.chart, slots.text].forEach((part) => resized.observe(part));
    signal.addEventListener("abort", () => resized.disconnect());
    return { state, refresh: draw, spoken: record.classes[state.shown].spoken };
  };

  // Show every explanation whose record is inside the document.
  slalom.start = () => {
    for (const root of document.querySelectorAll(".slalom:not(.ready)")) {
      const data = root.querySelector('script[type="application/json"]');
      if (!data) continue;
      const record = JSON.parse(data.textContent);
      const draw = record.kind === "answer" ? slalom.answer : slalom.show;
      draw(root, record, { heading: root.closest("main") ? "h1" : "h2" });
    }
  };
})((window.slalom = window.slalom || {}));
