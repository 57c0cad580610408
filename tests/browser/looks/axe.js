// Problems that axe finds on this page. Contrast takes most of the time, and depends on the style of
// a text, not on the page: styles that have passed are skipped, and of texts with the same style only
// one is checked. A further run on a page only reports problems that depend on the look.
async ([known, isFirst]) => {
  const numberOf = text => {
    let [high, low] = [7, 11];
    for (const letter of text) {
      high = Math.imul(high ^ letter.codePointAt(0), 2654435761);
      low = Math.imul(low ^ letter.codePointAt(0), 1597334677);
    }
    return (high >>> 0) * 2097152 + (low >>> 11);
  };
  const CLEAR = "rgba(0, 0, 0, 0)";
  // Style of a text and of its backgrounds, down to the first opaque one.
  const appearance = node => {
    const style = getComputedStyle(node);
    const said = [style.color, style.fontSize, style.fontWeight, style.textShadow, style.visibility];
    let isOpen = true;
    for (let part = node; part; part = part.parentElement) {
      const { backgroundColor, backgroundImage, opacity, position } = getComputedStyle(part);
      if (opacity !== "1") said.push(opacity);
      if (!isOpen) continue;
      if (backgroundColor !== CLEAR || backgroundImage !== "none") said.push(backgroundColor, backgroundImage);
      if (position !== "static") said.push(position);
      isOpen = !/^rgb\(/.test(backgroundColor);
    }
    return numberOf(said.join(" "));
  };
  const isText = node => node.matches("input, select, textarea, button")
    || [...node.childNodes].some(part => part.nodeType === Node.TEXT_NODE && part.data.trim());
  const passed = new Set(known);
  const texts = new Map();
  for (const node of document.body.querySelectorAll("*")) {
    if (!isText(node) || !node.checkVisibility({ visibilityProperty: true })) continue;
    const looks = appearance(node);
    if (passed.has(looks)) continue;
    texts.set(looks, [...texts.get(looks) ?? [], node]);
  }
  const OF_WHAT_IS_SHOWN = ["cat.name-role-value", "cat.text-alternatives", "cat.forms", "cat.keyboard", "cat.sensory-and-visual-cues"];
  const rules = await axe.run({
    ...(isFirst ? {} : { runOnly: { type: "tag", values: OF_WHAT_IS_SHOWN } }),
    rules: { "color-contrast": { enabled: false }, "target-size": { enabled: false } },
    resultTypes: ["violations"],
  });
  const first = [...texts.values()].map(([node]) => node);
  const contrasts = texts.size ? await axe.run({ include: first }, {
    runOnly: ["color-contrast"], resultTypes: ["violations", "passes"], elementRef: true,
  }) : { violations: [], passes: [] };
  return {
    broken: [...rules.violations, ...contrasts.violations].map(
      rule => `axe: ${rule.id}: ${rule.nodes[0].html}`),
    passed: contrasts.passes.flatMap(rule => rule.nodes).map(node => appearance(node.element)),
  };
}
