// Keeps the picture in view that belongs to the section one reads.
// Where there is room, the style sheet puts all pictures into one place; see zoom.css.

const sections = [...document.querySelectorAll("section")].filter((section) =>
  section.querySelector(":scope > .sm-zoom"),
);

function show(section) {
  for (const one of sections) one.toggleAttribute("data-shown", one === section);
}

/** Go to the section that the address names: without a box of its own, no browser does. */
function follow() {
  const named = sections.find(({ id }) => `#${id}` === location.hash);
  named?.querySelector("h2").scrollIntoView();
}

if (sections.length && "IntersectionObserver" in window) {
  const middle = new IntersectionObserver(
    (entries) => {
      const entered = entries.filter((entry) => entry.isIntersecting);
      if (entered.length) show(entered.at(-1).target.parentElement);
    },
    { rootMargin: "-50% 0px -50% 0px" }, // the line in the middle of the window
  );
  for (const section of sections) middle.observe(section.querySelector(".sm-told"));
  show(sections[0]);
  sections[0].parentElement.classList.add("sm-zooming");
  addEventListener("hashchange", follow);
  follow();
}
