// How numbers are written, as in numbers.py.
(function (slalom) {
  "use strict";
  const digits = (score, decimals = 2) => {
    const size = Math.abs(score);
    if (size >= 1e5) return size.toExponential(0);
    return size.toFixed(size < 9.995 ? decimals : size < 99.95 ? 1 : 0);
  };
  slalom.digits = digits;
  slalom.number = (score, decimals) => {
    const told = digits(score, decimals);
    return (+told === 0 ? "" : score < 0 ? "−" : "+") + told;
  };
  slalom.percent = (share) => {
    if (share > 0.999) return "> 99.9 %";
    if (share < 0.001) return "< 0.1 %";
    return `${(100 * share).toFixed(share >= 0.0095 && share <= 0.9905 ? 0 : 1)} %`;
  };
  slalom.unbroken = (told) => told.replaceAll(" %", "\u00a0%");
  slalom.probability = (logOdds) => 1 / (1 + Math.exp(-logOdds));

  // Maps data from low to high onto pixels from start to end; what lies outside sticks to the edge.
  slalom.axis = (low, high, start, end) => {
    const place = (x) => start + ((end - start) * (Math.min(Math.max(x, low), high) - low)) / (high - low);
    place.holds = (x) => x >= low && x <= high;
    place.ticks = (about = 5) => {
      const rough = (high - low) / about;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
      const found = [];
      for (let i = Math.ceil(low / step); i <= Math.floor(high / step); i++) found.push(i * step);
      return found;
    };
    return place;
  };
  slalom.tick = (x) => String(+x.toPrecision(6)).replace("-", "−");
  slalom.short = (label, most = 18) => (label.length <= most ? label : `${label.slice(0, most - 1)}…`);
})((window.slalom = window.slalom || {}));
