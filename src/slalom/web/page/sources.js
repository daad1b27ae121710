// The page of a language model: from sources and a question to an answer linked to its sources.
(function (slalom) {
  "use strict";
  const { live, element } = slalom;
  const EXAMPLE = [
    "The Olivetti faces were taken between April 1992 and April 1994 at AT&T Laboratories Cambridge. There are ten different images of each of 40 distinct subjects. The images are quantized to 256 grey levels. The target for this database is the identity of the person pictured. All pictures of faces were made in the years 1992 to 1994.",
    "When were the face images taken?",
  ];

  const list = element("div", { class: "documents" });
  const added = (text = "") => {
    const number = list.children.length + 1;
    const box = element("textarea", { rows: 5, "aria-label": `Source ${number}`, dir: "auto", spellcheck: "false", placeholder: "A document; a single one is cut into sentences" });
    box.value = text;
    list.append(box);
    return box;
  };
  const question = element("input", { type: "text", "aria-label": "Question", placeholder: "A question; empty asks for a summary", dir: "auto" });
  const answer = element("textarea", { rows: 2, "aria-label": "Answer", placeholder: "The answer to explain; empty lets the model answer", dir: "auto", spellcheck: "false" });
  const budget = element("input", { type: "number", min: 10, max: 5000, placeholder: "auto", "aria-label": "Queries" });
  const go = element("button", { type: "submit", class: "go" }, "Explain");
  const cancel = element("button", { type: "button", class: "cancel", hidden: true, click: () => running?.abort() }, "Cancel");
  const more = element("button", { type: "button", click: () => added().focus() }, "Add a document");
  const status = element("div", { class: "status", role: "status", "aria-live": "polite" });
  const bar = element("progress", { hidden: true, "aria-label": "Progress" });
  const shown = element("div", { class: "slalom embedded", hidden: true });
  let running = null;

  const say = (sentence, kind = "") => {
    status.className = `status ${kind}`;
    status.replaceChildren(sentence);
  };

  const explain = async (event) => {
    event?.preventDefault();
    running?.abort();
    const mine = (running = new AbortController());
    const sources = [...list.children].map(({ value }) => ({ text: value })).filter(({ text }) => text.trim());
    cancel.hidden = bar.hidden = false;
    bar.removeAttribute("value");
    say("querying the model …");
    try {
      const told = await live.streamed("/api/attribute", { sources, question: question.value, answer: answer.value.trim() || null, n_queries: budget.value ? +budget.value : null }, mine.signal, (kind, data) => {
        if (mine !== running || kind !== "progress" || data.total < 2) return;
        Object.assign(bar, { max: data.total, value: data.done });
        say(`querying the model: ${data.done} of about ${data.total}`);
      });
      if (mine !== running) return;
      shown.hidden = false;
      slalom.answer(shown, told.record, { ask: (removed) => live.asked("/api/said", { explanation: told.id, removed }) });
      say("");
    } catch (problem) {
      if (mine === running) say(problem.name === "AbortError" ? "cancelled" : problem.message, problem.name === "AbortError" ? "" : "error");
    } finally {
      if (mine === running) {
        running = null;
        cancel.hidden = bar.hidden = true;
      }
    }
  };

  added(EXAMPLE[0]);
  question.value = EXAMPLE[1];
  document.getElementById("panels").append(
    element(
      "section",
      { class: "panel" },
      element(
        "form",
        { class: "ask", submit: explain },
        list,
        element("label", { class: "wide" }, element("span", {}, "question"), question),
        answer,
        element("div", { class: "row" }, go, cancel, more, element("label", { class: "field" }, element("span", {}, "queries"), budget), bar),
      ),
      status,
      shown,
    ),
  );
  document.body.classList.add("ready");
})(window.slalom);
