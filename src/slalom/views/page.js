// Links words, points and rows of an explanation, shows every score of one, and recolours.
(() => {
  const digits = (x, decimals = 2) => {
    const size = Math.abs(x);
    if (size >= 1e5) return size.toExponential(0);
    return size.toFixed(size < 9.995 ? decimals : size < 99.95 ? 1 : 0);
  };
  const number = (x, decimals) => {
    const told = digits(x, decimals);
    return (+told === 0 ? "" : x < 0 ? "−" : "+") + told;
  };
  const add = (parent, tag, text) => {
    const child = parent.appendChild(document.createElement(tag));
    child.textContent = text;
    return child;
  };

  const start = (root) => {
    const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const all = (selector) => [...root.querySelectorAll(selector)];
    const form = root.querySelector(".controls");
    const tip = root.querySelector(".tip");
    const words = all(".w");
    const linked = all("[data-f]");
    let by = data.by;
    let shown = form.elements.class ? +form.elements.class.value : 0;
    let pinned = null;
    root.classList.add("ready");

    const at = (scores, f) => (Array.isArray(scores[f]) ? scores[f][shown] : scores[f]);
    const strength = (f) => {
      const columns = data.strengths[by];
      return (columns[shown] || columns[0])[f];
    };

    const paint = () => {
      for (const element of linked) {
        const s = strength(+element.dataset.f);
        const side = !data.sided[by] ? "loud" : s < 0 ? "against" : "for";
        element.classList.remove("for", "against", "loud");
        if (element.tagName !== "TR" && Math.abs(s) >= 0.03) element.classList.add(side);
        element.style.setProperty("--s", Math.abs(s).toFixed(3));
      }
      root.querySelector(".sides").hidden = !data.sided[by];
      root.querySelector(".by").textContent = by;
      root.querySelector(".says").textContent = data.says[by];
    };

    const moveToClass = () => {
      if (!data.axis) return;
      const [low, high, first, last] = data.axis;
      const place = (element, value) => {
        const x = first + ((last - first) * (Math.min(Math.max(value, low), high) - low)) / (high - low);
        element.style.transform = element.style.transform.replace(/\([^,]*/, `(${x.toFixed(1)}px`);
        return x;
      };
      all("g.p").forEach((point) => {
        const f = point.dataset.f;
        place(point, at(data.scores.value, f));
        point.classList.toggle("named", Math.abs(strength(f)) >= 0.15);
        const error = point.querySelector(".error");
        if (!error) return;
        const wide = (((last - first) / (high - low)) * at(data.errors.value, f)).toFixed(1);
        error.setAttribute("d", error.getAttribute("d").replace(/^.*(?=M0)/, `M${-wide} 0H${wide}`));
      });
      all("g.anchor").forEach((anchor) => place(anchor, data.anchor[shown]));
      all("g.whole").forEach((whole) => {
        const ends = place(whole, data.whole[shown]) > (first + last) / 2;
        const text = whole.querySelector("text");
        text.textContent = `model of the whole text ${number(data.whole[shown])}`;
        text.setAttribute("class", ends ? "end" : "");
        text.setAttribute("x", ends ? -5 : 5);
      });
    };

    const changeClass = () => {
      const label = data.labels[shown];
      root.querySelector(".class").textContent = label;
      const ends = all(".axes text");
      if (ends.length) [ends[0].textContent, ends[2].textContent] = [`← against ${label}`, `for ${label} →`];
      const names = Object.keys(data.scores);
      for (const row of all("tbody tr"))
        names.forEach((name, n) => {
          if (data.identified[row.dataset.f]) fill(row.cells[n + 1], name, row.dataset.f);
        });
      moveToClass();
    };

    const fill = (cell, name, f) => {
      const decimals = data.digits[name];
      cell.textContent = number(at(data.scores[name], f), decimals);
      if (data.errors[name]) add(cell, "small", ` ±${digits(at(data.errors[name], f), decimals)}`);
    };

    const tell = (f, target) => {
      tip.replaceChildren();
      add(tip, "b", data.units[f] + (data.times[f] > 1 ? ` ×${data.times[f]}` : ""));
      if (!data.identified[f]) add(tip, "small", "not identified: the questions say nothing of it");
      else {
        const grid = add(tip, "div", "");
        for (const name of Object.keys(data.scores)) {
          add(grid, "span", name);
          fill(add(grid, "span", ""), name, f);
        }
      }
      tip.hidden = false;
      const box = target.getBoundingClientRect();
      const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
      const below = box.bottom + high + 10 < innerHeight;
      tip.style.top = `${below ? box.bottom + 8 : Math.max(4, box.top - high - 8)}px`;
      tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - wide - 8))}px`;
    };

    const show = (target) => {
      const f = target ? target.dataset.f : null;
      for (const element of linked) element.classList.toggle("on", element.dataset.f === f);
      if (target) tell(+f, target.querySelector("circle,rect,th") || target);
      else tip.hidden = true;
    };
    const pin = (target) => {
      pinned = pinned === target ? null : target;
      for (const word of words)
        word.setAttribute("aria-pressed", pinned !== null && word.dataset.f === pinned.dataset.f);
      show(pinned);
    };
    const near = (event) => event.target.closest && event.target.closest("[data-f]");

    root.addEventListener("pointerover", (event) => show(near(event) || pinned));
    root.addEventListener("pointerleave", () => show(pinned));
    root.addEventListener("focusin", (event) => near(event) && show(near(event)));
    root.addEventListener("focusout", () => show(pinned));
    root.addEventListener("click", (event) => near(event) && pin(near(event)));
    root.addEventListener("keydown", (event) => {
      const here = words.indexOf(event.target);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") {
        if (pinned) pin(pinned);
        show(null);
      } else if (here >= 0 && step && words[here + step]) {
        words[here].tabIndex = -1;
        words[here + step].tabIndex = 0;
        words[here + step].focus();
        event.preventDefault();
      } else if (here >= 0 && (event.key === "Enter" || event.key === " ")) {
        pin(event.target);
        event.preventDefault();
      }
    });

    form.addEventListener("change", () => {
      by = form.elements.by.value;
      const index = form.elements.class ? +form.elements.class.value : 0;
      if (index !== shown) {
        shown = index;
        changeClass();
      }
      paint();
    });

    const body = root.querySelector("tbody");
    all("thead [data-score]").forEach((head) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const size = (row) => at(data.scores[head.dataset.score], row.dataset.f);
        [...body.rows].sort((a, b) => size(b) - size(a)).forEach((row) => body.append(row));
        all("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", "descending");
      });
    });
    all("g.p title").forEach((title) => title.remove()); // the card says more
    words.forEach((word, n) => {
      word.tabIndex = n ? -1 : 0;
      word.setAttribute("role", "button");
    });
  };

  document.querySelectorAll(".slalom:not(.ready)").forEach(start);
})();
