// One panel: a form, its explanation, and what happens without some words.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});
  const { element } = slalom;

  live.panel = (known, given, changed) => {
    const status = element("div", { class: "status", role: "status", "aria-live": "polite" });
    const bar = element("progress", { hidden: true, "aria-label": "Progress" });
    const shown = element("div", { class: "slalom embedded", hidden: true });
    const tools = element("div", { class: "row tools", hidden: true });
    const below = element("div", { class: "below" });
    const removed = new Set(given.removed ?? []);
    let [view, running, current, lime, whatIf] = [given.view ?? {}, null, null, null, null];
    let pairsWanted = given.pairs === true; // by the link that was opened, and only once

    const say = (sentence, kind = "") => {
      status.className = `status ${kind}`;
      status.replaceChildren(sentence);
    };
    const fail = (problem) => say(problem.message, "error");

    const progress = {
      waiting: ({ ahead }) => say(ahead ? `waiting: ${ahead} ${ahead === 1 ? "request" : "requests"} ahead` : "waiting for a free slot"),
      progress: ({ done, total, seconds }) => {
        Object.assign(bar, { max: total, value: Math.min(done, total) });
        const long = seconds ? ` (about ${seconds} s)` : "";
        say(`querying the classifier: ${done} of about ${total}${long}`);
      },
      rough: (told) => {
        show(told);
        say("first rough result; refining …");
      },
      done: () => {},
    };

    const explain = async () => {
      cancel();
      const asked = form.state();
      running = new AbortController();
      form.busy(true);
      Object.assign(bar, { hidden: false });
      bar.removeAttribute("value");
      say("starting …");
      const mine = running;
      try {
        const told = await live.explained(asked, running.signal, (kind, data) => mine === running && progress[kind]?.(data));
        if (mine !== running) return;
        show(told);
        edited();
        if (pairsWanted) shown.querySelector(".pairs .find")?.click();
        pairsWanted = false;
      } catch (problem) {
        if (mine !== running && problem.name === "AbortError") return;
        if (problem.name === "AbortError") say("cancelled");
        else {
          fail(problem);
          shown.hidden = tools.hidden = true; // it belongs to another request
        }
      } finally {
        if (mine === running) ended();
      }
      changed();
    };
    const ended = () => {
      running = null;
      form.busy(false);
      bar.hidden = true;
    };
    const cancel = () => {
      if (!running) return;
      const stopped = running;
      ended();
      stopped.abort();
      say("cancelled");
    };

    const draw = () => {
      const made = slalom.show(shown, current.record, {
        removed, state: view, beneath: below, pairs,
        onWord: (unit) => setRemoved(removed.has(unit) ? [...removed].filter((other) => other !== unit) : [...removed, unit]),
        onState: (state) => {
          const other = view.shown !== state.shown;
          view = state;
          if (other) (whatIf.forget(), whatIf.refresh());
          changed();
        },
      });
      view = { ...made.state };
      return made;
    };
    const pairs = async () => {
      const { explanation, id } = current;
      explanation.pairs = await live.asked("/api/pairs", { explanation: id });
      changed();
      return explanation.pairs;
    };
    let drawnView = null;

    // A result shown below another text must not be taken for an explanation of that text.
    const edited = () => {
      if (!current) return;
      const stale = JSON.stringify(form.state().text) !== JSON.stringify(current.explanation.text);
      shown.classList.toggle("stale", stale);
      say(stale ? "The text has changed. Press Explain to update the result below." : "");
    };

    const show = (told) => {
      shown.classList.remove("stale");
      current = told;
      lime = null;
      const n_units = told.explanation.units.length;
      for (const unit of removed) if (unit >= n_units) removed.delete(unit);
      shown.hidden = tools.hidden = false;
      drawnView = draw();
      whatIf = live.whatIf(host);
      below.replaceChildren(whatIf.root);
    };

    const setRemoved = (units) => {
      removed.clear();
      units.forEach((unit) => removed.add(unit));
      const focused = document.activeElement?.dataset?.unit;
      drawnView.refresh();
      if (focused !== undefined) shown.querySelector(`.w[data-unit="${focused}"]`)?.focus();
      whatIf.refresh();
      changed();
    };

    // LIME runs once per explanation, when the first word is removed.
    const names = async () => {
      if (current.explanation.method === "lime" || !current.id) return [current.id];
      lime ??= live
        .explained({ ...form.state(), ...asAsked(), method: "lime" }, undefined, () => {})
        .then(({ id }) => id)
        .catch(() => null);
      const id = await lime;
      return id ? [current.id, id] : [current.id];
    };
    const asAsked = () => {
      const { text, target, quality, seed } = current.explanation;
      return { text, target: target.index === null ? "all" : target.label, n_queries: Math.max(quality.n_queries, 100), seed };
    };
    const host = {
      removed, setRemoved, names, fail,
      record: () => current.record,
      shown: () => view.shown ?? current.record.shown,
      label: () => current.record.classes[host.shown()].label,
      classIndex: () => (current.record.classes.length > 1 ? host.shown() : 0),
    };

    const open = async (file) => {
      try {
        const content = await file.text();
        if (!/\.json$/i.test(file.name) && file.type !== "application/json") {
          form.setText(content.replace(/\r?\n$/, ""));
          return explain();
        }
        let record;
        try {
          record = JSON.parse(content);
        } catch {
          throw new Error(`${file.name} is not an explanation: it is not JSON`);
        }
        cancel();
        const told = await live.asked("/api/open", record);
        removed.clear();
        form.setText(told.explanation.text);
        show(told);
        say(`opened ${file.name}`);
        changed();
      } catch (problem) {
        fail(problem);
      }
    };
    const save = () => slalom.download("explanation.json", new Blob([JSON.stringify(current.explanation)], { type: "application/json" }));

    const form = live.form(known, given, { explain, cancel, open, edited });
    tools.append(element("button", { type: "button", click: save }, "Save"), element("span", { class: "hint" }, "Save writes a file that can be opened here again."));
    const root = element("section", { class: "panel" }, form.root, element("div", { class: "row" }, bar, status), shown, tools);
    root.addEventListener("dragover", (event) => {
      event.preventDefault();
      root.classList.add("over");
    });
    root.addEventListener("dragleave", () => root.classList.remove("over"));
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      root.classList.remove("over");
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
    return {
      root, explain, cancel,
      told: () => current && !shown.classList.contains("stale") && { record: current.record, view },
      state: () => ({ ...form.state(), removed: [...removed], view, pairs: pairsWanted || Boolean(current?.explanation.pairs) }),
      hasText: () => [form.state().text].flat().join("").trim() !== "",
    };
  };
})((window.slalom = window.slalom || {}));
