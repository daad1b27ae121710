// The form of a panel: what to explain, and how.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});
  const { element } = slalom;
  const UNITS = [["", "automatic"], ["word", "words"], ["phrase", "phrases"], ["token", "tokens"], ["sentence", "sentences"]];

  const ABSENT = [["remove", "removed"], ["mask", "masked"]];

  const field = (label, control) => element("label", { class: "field" }, element("span", {}, label), control);
  const select = (options, chosen, change) =>
    element("select", { change }, options.map(([value, title]) => element("option", { value, selected: value === chosen }, title)));

  // A folder by its last part, which is short, unless two models share it.
  const last = (name) => name.split("/").filter(Boolean).pop() ?? name;
  const called = (name, models) => (models.filter((other) => last(other.name) === last(name)).length > 1 ? name : last(name));

  // `known` has models and methods; the form's `state()` is the request to the API.
  live.form = (known, given, act) => {
    const pair = Array.isArray(given.text);
    const text = element("textarea", { rows: 4, "aria-label": "Text", placeholder: "Paste a text, or drop a file here", dir: "auto", spellcheck: "false" });
    const second = element("textarea", { rows: 2, "aria-label": "Second text", placeholder: "The second text of a pair", dir: "auto", spellcheck: "false" });
    text.value = pair ? given.text[0] : given.text ?? "";
    second.value = pair ? given.text[1] : "";
    second.hidden = !pair;
    const model = select(known.models.map(({ name }) => [name, called(name, known.models)]), given.model, () => retarget());
    const target = select([]);
    const method = select(known.methods.map(({ name }) => [name, name]), given.method ?? "slalom", () => describe());
    const summary = element("p", { class: "hint" });
    const units = select(UNITS, given.units ?? "");
    const absent = select(ABSENT, given.absent ?? "remove");
    const budget = element("input", { type: "number", min: 10, max: 5000, placeholder: "auto", "aria-label": "Queries" });
    const seed = element("input", { type: "number", min: 0, "aria-label": "Seed" });
    budget.value = given.n_queries ?? "";
    seed.value = given.seed ?? 0;

    const retarget = (chosen) => {
      const { labels } = known.models.find(({ name }) => name === model.value) ?? known.models[0];
      const options = [["", "the predicted class"], ...labels.map((label) => [label, label]), ["all", "all classes"]];
      target.replaceChildren(...options.map(([value, title]) => element("option", { value, selected: value === chosen }, title)));
    };
    const describe = () => summary.replaceChildren(known.methods.find(({ name }) => name === method.value)?.summary ?? "");
    retarget(given.target ?? "");
    describe();

    const examples = select([["", "examples …"], ...live.EXAMPLES.map(([name], at) => [String(at), name])], "", () => {
      if (examples.value === "") return;
      text.value = live.EXAMPLES[+examples.value][1];
      setPair(false);
      examples.value = "";
      act.explain();
    });
    examples.setAttribute("aria-label", "Examples");
    const setPair = (on) => {
      second.hidden = !on;
      pairing.checked = on;
    };
    const pairing = element("input", { type: "checkbox", checked: pair, change: (event) => setPair(event.target.checked) });
    const file = element("input", { type: "file", accept: ".txt,.json,text/plain,application/json", hidden: true, "aria-label": "File to open", change: () => file.files[0] && act.open(file.files[0]) });
    const cancel = element("button", { type: "button", class: "cancel", hidden: true, click: act.cancel }, "Cancel");
    const go = element("button", { type: "submit", class: "go" }, "Explain");

    const root = element(
      "form",
      { class: "ask", autocomplete: "off", input: () => act.edited(), submit: (event) => (event.preventDefault(), act.explain()) },
      text,
      second,
      element(
        "div",
        { class: "row" },
        go,
        cancel,
        examples,
        element("button", { type: "button", click: () => file.click() }, "Open …"),
        file,
        element("label", { class: "check" }, pairing, " pair of texts"),
      ),
      element(
        "div",
        { class: "row settings" },
        field("model", model), field("method", method), field("explain", target), field("units", units), field("absent", absent), field("queries", budget), field("seed", seed),
      ),
      summary,
    );
    const number = (input) => (input.value === "" ? null : +input.value);
    const state = () => ({
      text: pairing.checked ? [text.value, second.value] : text.value,
      model: model.value, method: method.value,
      target: target.value || null, units: units.value || null, absent: absent.value,
      n_queries: number(budget), seed: number(seed) ?? 0,
    });
    const busy = (on) => {
      go.disabled = on;
      cancel.hidden = !on;
    };
    const setText = (given_) => {
      setPair(Array.isArray(given_));
      [text.value, second.value] = Array.isArray(given_) ? given_ : [given_, ""];
    };
    return { root, state, busy, setText };
  };
})((window.slalom = window.slalom || {}));
