// The page: one panel, or two side by side, and an address that holds their state.
(async function (slalom) {
  "use strict";
  const { live } = slalom;
  const place = document.getElementById("panels");
  const compare = document.getElementById("compare");
  const link = document.getElementById("link");
  const panels = [];

  let saving = null;
  const difference = document.getElementById("difference");
  const changed = () => {
    live.difference(difference, panels.map((panel) => panel.told()), panels.map((panel) => panel.state()));
    clearTimeout(saving);
    saving = setTimeout(async () => history.replaceState(null, "", `#${await live.packed(panels.map((panel) => panel.state()))}`), 150);
  };

  const [{ models }, { methods }] = await Promise.all([live.fetched("/api/models"), live.fetched("/api/methods")]);
  const add = (given) => {
    const panel = live.panel({ models, methods }, given, changed);
    panels.push(panel);
    place.append(panel.root);
    place.classList.toggle("two", panels.length > 1);
    compare.textContent = panels.length > 1 ? "One panel" : "Compare";
    return panel;
  };

  compare.addEventListener("click", () => {
    if (panels.length > 1) {
      const last = panels.pop();
      last.cancel();
      last.root.remove();
      place.classList.remove("two");
      compare.textContent = "Compare";
    } else {
      const { text, model, target, units, absent, n_queries, seed } = panels[0].state();
      const panel = add({ text, model, target, units, absent, n_queries, seed, method: "lime" });
      if (panel.hasText()) panel.explain();
    }
    changed();
  });
  link.addEventListener("click", async () => {
    const address = `${location.origin}/#${await live.packed(panels.map((panel) => panel.state()))}`;
    history.replaceState(null, "", address);
    try {
      await navigator.clipboard.writeText(address);
      link.textContent = "Copied";
    } catch {
      link.textContent = "In the address bar";
    }
    setTimeout(() => (link.textContent = "Copy link"), 2000);
  });
  window.addEventListener("dragover", (event) => event.preventDefault());
  window.addEventListener("drop", (event) => event.preventDefault());

  const kept = location.hash.length > 1 ? await live.unpacked(location.hash.slice(1)) : null;
  const states = Array.isArray(kept) && kept.length ? kept.slice(0, 2) : [{ text: live.EXAMPLES[0][1] }];
  for (const state of states) add(state);
  if (Array.isArray(kept)) for (const panel of panels) if (panel.hasText()) panel.explain();
  document.body.classList.add("ready");
})(window.slalom);
