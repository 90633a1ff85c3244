// Links that carry a figure's setting: chapters/01_rooflines.html#roofline?chip=H100&B=64

/** The name of a figure in links. The second roofline of a page is "roofline-2". */
export const address = (name, count) => (count > 1 ? `${name}-${count}` : name);

export const linkOf = (place, settings) => `#${place}?${new URLSearchParams(settings)}`;

/** The settings for the figure at `place` in a page's fragment, or null. */
export function wanted(fragment, place, controls) {
  const [named, query] = fragment.slice(1).split("?");
  if (named !== place || query === undefined) return null;
  const sliders = new Set(controls.filter((c) => c.type === "range").map((c) => c.name));
  const given = [...new URLSearchParams(query)];
  return Object.fromEntries(
    given.map(([name, text]) => [name, sliders.has(name) ? Number(text) : text]),
  );
}
