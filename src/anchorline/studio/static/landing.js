// The browser omits the cookie (SameSite=Strict) when it follows a link from another site. Loading the page again
// from here sends it. A mark in the session storage prevents an endless loop in a browser without the cookie.
const MARK = "anchorline-reloaded";
const here = location.pathname + location.search + location.hash;
if (sessionStorage.getItem(MARK) !== here) {
  sessionStorage.setItem(MARK, here);
  location.replace(here);
} else {
  sessionStorage.removeItem(MARK);
}

// Submits the token by script, so that the address with its state stays the same.
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new URLSearchParams({ token: document.getElementById("token").value });
  await fetch("/login", { method: "POST", body: form, credentials: "same-origin" });
  sessionStorage.setItem(MARK, here);
  location.replace(here);
});
