// A chart as a file: SVG with its colours inside, or PNG at twice the size.
(function (slalom) {
  "use strict";
  const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

  slalom.download = (name, blob) => {
    const link = slalom.element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const alone = (chart) => {
    const copy = chart.cloneNode(true);
    const styled = [chart, ...chart.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((node, at) => {
      const style = getComputedStyle(styled[at]);
      for (const name of COPIED) node.setAttribute(name, style.getPropertyValue(name));
      node.removeAttribute("class");
    });
    const ground = getComputedStyle(chart.closest("figure") ?? document.body).backgroundColor;
    copy.prepend(slalom.drawn("rect", { width: "100%", height: "100%", fill: ground }));
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return new XMLSerializer().serializeToString(copy);
  };

  slalom.saveSvg = (chart, name) => slalom.download(`${name}.svg`, new Blob([alone(chart)], { type: "image/svg+xml" }));

  slalom.savePng = (chart, name) => {
    const [width, height] = [chart.clientWidth || chart.width.baseVal.value, chart.clientHeight || chart.height.baseVal.value];
    const image = new Image();
    image.onload = () => {
      const canvas = slalom.element("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => slalom.download(`${name}.png`, blob), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(alone(chart))}`;
  };
})((window.slalom = window.slalom || {}));
