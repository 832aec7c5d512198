// A link from another site comes without the cookie, which is kept from other sites. Asking once more, from here,
// brings it along; a mark in this tab keeps a browser without the cookie from asking for ever.
const MARK = "anchorline-asked-again";
const here = location.pathname + location.search + location.hash;
if (sessionStorage.getItem(MARK) !== here) {
  sessionStorage.setItem(MARK, here);
  location.replace(here);
} else {
  sessionStorage.removeItem(MARK);
}

// Sent from here, so that what the link shows is shown afterwards.
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = new URLSearchParams({ token: document.getElementById("token").value });
  await fetch("/login", { method: "POST", body: given, credentials: "same-origin" });
  sessionStorage.setItem(MARK, here);
  location.replace(here);
});
