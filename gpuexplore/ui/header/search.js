// The header's search (Ctrl+K) and the state of the server, which the browser asks for every few seconds.
const PERIOD_MS = 10000
const MOST = 12

// On a phone the sidebar covers the page that one of its links has opened.
function uncover(page) {
  const sidebar = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"]')
  const kept = document.documentElement.dataset
  if (kept.page && kept.page !== page && window.innerWidth <= 768) {
    sidebar?.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
  }
  kept.page = page
}

export default function ({ parentElement, data: bytes, setTriggerValue }) {
  const data = JSON.parse(new TextDecoder().decode(bytes))
  const find = (selector) => parentElement.querySelector(selector)
  const dialog = find("dialog")
  const field = find("dialog input")
  const list = find("ul")
  const status = find(".status")
  const entries = [...data.entries, ...data.runs]
  let chosen = 0

  function go(target) {
    dialog.close()
    status.open = false
    setTriggerValue("target", target)
  }

  // Every typed word occurs; what begins with the first one stands above, and the shortest of those.
  function matches() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
    if (!words.length) return [...data.runs.slice(0, 4), ...data.entries].slice(0, MOST)
    const rank = ([label]) => (label.toLowerCase().startsWith(words[0]) ? 0 : 1)
    return entries
      .filter(([label, kind]) => words.every((word) => `${label} ${kind}`.toLowerCase().includes(word)))
      .sort((a, b) => rank(a) - rank(b) || a[0].length - b[0].length)
      .slice(0, MOST)
  }

  function draw() {
    const found = matches()
    chosen = Math.max(0, Math.min(chosen, found.length - 1))
    list.replaceChildren(
      ...found.map(([label, kind, target], index) => {
        const row = document.createElement("li")
        Object.assign(row, { id: `found-${index}`, role: "option" })
        row.setAttribute("aria-selected", String(index === chosen))
        const about = Object.assign(document.createElement("span"), { textContent: kind })
        row.append(label, about)
        row.addEventListener("click", () => go(target))
        return row
      }),
    )
    if (!found.length) list.append(Object.assign(document.createElement("li"), { textContent: "No match" }))
    field.setAttribute("aria-activedescendant", found.length ? `found-${chosen}` : "")
    list.children[chosen]?.scrollIntoView({ block: "nearest" })
  }

  function open() {
    field.value = ""
    chosen = 0
    draw()
    if (!dialog.open) dialog.showModal()
    field.focus()
  }

  field.oninput = () => {
    chosen = 0
    draw()
  }
  field.onkeydown = (event) => {
    const found = matches()
    if (event.key === "Enter" && found[chosen]) go(found[chosen][2])
    else if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, found.length - 1)
    else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0)
    else return
    event.preventDefault()
    draw()
  }
  dialog.onclick = (event) => event.target === dialog && dialog.close() // beside it
  find(".open").onclick = open
  for (const button of parentElement.querySelectorAll("[data-target]")) button.onclick = () => go(button.dataset.target)

  function pressed(event) {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault()
      open()
    } else if (event.key === "Escape") status.open = false
  }
  document.addEventListener("keydown", pressed)

  function show(words, kind) {
    find(".words").textContent = [data.device, words].filter(Boolean).join(" · ")
    find(".light").className = `light ${kind}`
  }

  async function ask() {
    if (document.hidden) return
    try {
      const answer = await fetch(new URL("./api/status", window.location.href))
      const { running, waiting, yours, supervisors } = await answer.json()
      if (!supervisors?.some((each) => each.alive)) show("not measuring", "")
      else if (!running && !waiting) show("idle", "idle")
      else {
        const mine = yours?.startsWith("measuring") ? yours : running ? "measuring" : ""
        const place = yours && mine !== yours ? yours : ""
        show([mine, waiting ? `${waiting} waiting` : "", place].filter(Boolean).join(", "), "busy")
      }
    } catch {
      show("no answer", "")
    }
  }
  uncover(data.page)
  if (!find(".words").textContent) show("", "")
  ask()
  const timer = window.setInterval(ask, PERIOD_MS)
  return () => {
    window.clearInterval(timer)
    document.removeEventListener("keydown", pressed)
  }
}
