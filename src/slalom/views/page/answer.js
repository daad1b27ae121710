// An answer beside its sources: point at a sentence and its sources light up, or at a source and
// its sentences do; leave sources out and see how likely the answer is then.
(function (slalom) {
  "use strict";
  const { element, number } = slalom;
  const ALIKE = 0.05; // nats; answer.py says the same
  const MOST = 1e6;

  const factor = (nats) => {
    const times = Math.exp(Math.min(Math.abs(nats), 50));
    if (times >= MOST) return "over a million times";
    if (times < 9.95) return `${times.toFixed(1)} times`;
    const digits = 10 ** Math.max(0, String(Math.floor(times)).length - 2);
    const rounded = Math.round(times / digits) * digits;
    return `${rounded < 1e4 ? rounded : String(rounded).replace(/\B(?=(\d{3})+$)/g, "\u202f")} times`;
  };
  slalom.likely = (nats) => (Math.abs(nats) < ALIKE ? "as likely" : `${factor(nats)} ${nats > 0 ? "less likely" : "likelier"}`);

  const shade = (share, most) => Math.max(0, Math.min(9, Math.round((9 * share) / Math.max(most, 1e-9))));
  const named = (units) => units.map((unit) => `[${unit + 1}]`).join(" ");

  // `options.ask(removed)` queries the model, where there is one.
  slalom.answer = (root, record, options = {}) => {
    const removed = new Set();
    let pinned = null; // ["sentence" | "source", number]
    const status = element("p", { class: "told", role: "status" });

    const light = (what) => {
      const [kind, at] = what ?? pinned ?? [null, null];
      const strong = (own, all) => (kind === null ? 0 : shade(own, Math.max(...all, 0)));
      sentences.forEach((node, number) => {
        const shares = record.sentences[number].shares;
        const level = kind === "source" ? strong(shares[at], shares) : kind === "sentence" && at === number ? 9 : 0;
        node.className = `said${level ? ` for s${level}` : ""}`;
      });
      cards.forEach((node, unit) => {
        const shares = kind === "sentence" ? record.sentences[at].shares : record.sources.map(({ share }) => share);
        const level = kind === "source" ? (at === unit ? 9 : 0) : strong(shares[unit], shares);
        node.className = `source${level ? ` for s${level}` : ""}${removed.has(unit) ? " out" : ""}`;
      });
      [...sentences, ...cards.map((card) => card.querySelector(".open"))].forEach((node) => node.setAttribute("aria-pressed", "false"));
      if (pinned) (pinned[0] === "sentence" ? sentences[pinned[1]] : cards[pinned[1]].querySelector(".open")).setAttribute("aria-pressed", "true");
    };
    const pin = (kind, at) => {
      pinned = pinned && pinned[0] === kind && pinned[1] === at ? null : [kind, at];
      light(null);
    };
    const pointing = (kind, at) => ({
      pointerenter: () => light([kind, at]),
      pointerleave: () => light(null),
      focus: () => light([kind, at]),
      blur: () => light(null),
      click: () => pin(kind, at),
    });

    const pressed = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.target.click();
    };
    const sentences = record.sentences.map((one, at) =>
      element("span", { role: "button", tabindex: 0, class: "said", "aria-pressed": "false", ...pointing("sentence", at), keydown: pressed }, one.text, element("sup", {}, one.cited.map((unit) => `[${unit + 1}]`).join(""))),
    );
    const most = Math.max(...record.sources.map(({ share }) => Math.abs(share)), 1e-9);
    const cards = record.sources.map((source, unit) =>
      element(
        "li",
        { class: "source" },
        element("label", { class: "shown", title: "Untick to leave it out" }, element("input", { type: "checkbox", checked: true, "aria-label": `Show source ${unit + 1}`, change: (event) => leave(unit, !event.target.checked) })),
        element(
          "button",
          { type: "button", class: "open", "aria-pressed": "false", ...pointing("source", unit) },
          source.title && element("b", {}, `[${unit + 1}] ${source.title}`),
          element("span", { dir: "auto" }, source.title ? source.text : `[${unit + 1}] ${source.text}`),
          source.matters && element("small", {}, source.lost),
        ),
        bar(source.share, most),
        element("span", { class: "nats", title: source.measured ? `${source.lost}: measured` : `${source.lost}: estimated` }, number(source.share, 1)),
      ),
    );

    function bar(share, most) {
      const width = 60 * Math.min(1, Math.abs(share) / most);
      return slalom.drawn(
        "svg",
        { class: "share", width: 62, height: 10, "aria-hidden": "true" },
        slalom.drawn("rect", { class: share < 0 ? "against" : "for", x: 0, y: 1, width: Math.max(1, width), height: 8, rx: 2 }),
      );
    }

    let asking = 0;
    const leave = async (unit, out) => {
      removed[out ? "add" : "delete"](unit);
      light(null);
      const units = [...removed].sort((a, b) => a - b);
      if (!units.length) return status.replaceChildren(NOTHING_OUT);
      const predicted = record.what_if.lost[units.join(",")];
      tell(units, predicted, null);
      if (!options.ask) return;
      const mine = (asking += 1);
      try {
        const answered = await options.ask(units);
        if (mine === asking) tell(units, answered.predicted, answered.lost);
      } catch (problem) {
        if (mine === asking) status.replaceChildren(problem.message);
      }
    };
    const NOTHING_OUT = "Untick a source to see how likely the answer is without it.";
    const line = (lost) =>
      lost.length === 1
        ? [`the answer is ${slalom.likely(lost[0])}`]
        : [`the answer is ${slalom.likely(lost[0])}; `, lost.slice(1).map((nats, at) => `sentence ${at + 1}: ${slalom.likely(nats)}`).join(", ")];
    const tell = (units, predicted, measured) => {
      const without = `Without ${named(units)} `;
      if (measured) {
        const beside = predicted ? `; predicted: ${slalom.likely(predicted[0])}` : "";
        return status.replaceChildren(element("b", {}, without), ...line(measured), ` (measured${beside}).`);
      }
      if (predicted) return status.replaceChildren(element("b", {}, without), ...line(predicted), options.ask ? " (predicted; querying the model …)" : " (predicted).");
      status.replaceChildren(options.ask ? `${without}: querying the model …` : `This file has predictions for up to ${record.what_if.most} sources left out; “slalom serve --language-model” queries the model.`);
    };
    status.append(NOTHING_OUT);

    const either = record.sentences.length > 1 ? record.sentences.filter(({ told }) => told) : []; // the verdict says it of one
    root.replaceChildren(
      element(
        "header",
        {},
        element(
          "div",
          {},
          element(options.heading ?? "h2", { class: "sentence" }, record.verdict.map(([text, role]) => (role ? element("b", { class: role }, text) : text))),
        ),
        element("div", { class: `trust ${record.trust.word}` }, element("b", {}, `Trust: ${record.trust.word}`), element("ul", {}, record.trust.lines.map((told) => element("li", {}, told)))),
      ),
      element(
        "div",
        { class: "panes" },
        element(
          "figure",
          { class: "answered" },
          element("h3", {}, "the answer"),
          element("p", { class: "text", dir: "auto" }, record.sentences.map((one, at) => [one.before, sentences[at]])),
          either.length > 0 && element("ul", { class: "small" }, either.map((one) => element("li", {}, `“${slalom.short(one.text, 60)}”: ${one.told}`))),
          status,
        ),
        element("figure", { class: "sources" }, element("h3", {}, "sources, with their Shapley values in nats"), element("ol", {}, cards)),
      ),
      element("footer", {}, record.notes.length > 0 && element("ul", {}, record.notes.map((note) => element("li", {}, note))), element("p", {}, `${record.classifier} · ${record.facts}`)),
    );
    root.classList.add("ready");
    return { removed };
  };
})((window.slalom = window.slalom || {}));
