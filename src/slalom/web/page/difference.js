// Where two explanations of one text disagree: its words, coloured by the difference of their scores.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});
  const { element, number } = slalom;
  const N_LISTED = 8;
  const WORTH = 0.1; // of the strongest word; strengths are compared, because methods differ in scale

  const unitsOf = ({ record }) => record.sides.flatMap(({ pieces }) => pieces.filter(([, row]) => row !== undefined));
  const stateOf = ({ record, view }) => ({ told: record.classes[view.shown ?? record.shown], by: view.by ?? record.by });

  // Per unit: its score in both, and the difference of their strengths.
  const compared = (one, other) => {
    const [units, others] = [unitsOf(one), unitsOf(other)];
    if (units.length !== others.length || units.some(([text], at) => text !== others[at][0])) return null;
    const [a, b] = [stateOf(one), stateOf(other)];
    return units.map(([text, row, unit], at) => {
      const second = others[at][1];
      const strengths = [a.told.strengths[a.by][row], b.told.strengths[b.by][second]];
      return { text, unit, scores: [a.told.scores[a.by][row], b.told.scores[b.by][second]], gap: strengths[0] - strengths[1] };
    });
  };

  const name = ({ record }, state, other) => (state.method === other.method ? `${record.method}, ${record.classifier}` : record.method);

  const text = (record, units) => {
    const gaps = new Map(units.map(({ unit, gap }) => [unit, gap]));
    const most = Math.max(...units.map(({ gap }) => Math.abs(gap)), WORTH);
    return record.sides.map(({ pieces }) =>
      element("p", { class: "text", dir: "auto" }, pieces.map(([piece, row, unit]) =>
        row === undefined ? piece : element("span", { class: `w ${slalom.shade(gaps.get(unit) / most, true)}` }, piece))));
  };

  // `place` is a section, filled by two results about the same words and emptied by anything else.
  live.difference = (place, found, states) => {
    const units = found.length === 2 && found.every(Boolean) && compared(...found);
    place.hidden = !units;
    if (!units) return place.replaceChildren();
    const names = [name(found[0], states[0], states[1]), name(found[1], states[1], states[0])];
    const apart = units.filter(({ gap }) => Math.abs(gap) >= WORTH).sort((x, y) => Math.abs(y.gap) - Math.abs(x.gap)).slice(0, N_LISTED);
    place.replaceChildren(
      element("figure", {},
        element("h3", {}, "where the two differ"),
        text(found[0].record, units),
        element("ul", { class: "pairs" }, apart.map(({ text: word, scores }) =>
          element("li", {}, element("b", {}, word), element("span", {}, `${names[0]} ${number(scores[0])}`), element("span", {}, `${names[1]} ${number(scores[1])}`)))),
        element("figcaption", {}, apart.length
          ? `Blue: ${names[0]} gives the word a higher score than ${names[1]} does; orange: a lower one. Scores are compared relative to the strongest word of each explanation.`
          : "The two agree on every word.")),
    );
  };
})((window.slalom = window.slalom || {}));
