// Controls of the chart of Explore: they set the chart's parameters and the address in the browser, without the server.
const kept = new WeakMap()

export default function ({ parentElement, data: bytes, setTriggerValue }) {
  const data = JSON.parse(new TextDecoder().decode(bytes))
  const state = kept.get(parentElement) ?? { ...data.state }
  state.keys = state.keys.filter((key) => data.devices.some((device) => device.key === key))
  kept.set(parentElement, state)
  const find = (selector) => parentElement.querySelector(selector)
  const operation = () => data.operations.find((each) => each.name === state.op)

  function chart() {
    return document.querySelectorAll(`.st-key-${data.chart} form.vega-bindings input`)
  }

  // An embedded chart starts with the parameters it was made with: what differs is set again.
  function push() {
    const wanted = { op: state.op, dtype: state.dtype, gpus: `,${state.keys.join(",")},`, n: state.n, view: state.view }
    for (const input of chart()) {
      if (input.name in wanted && input.value !== String(wanted[input.name])) {
        input.value = wanted[input.name]
        input.dispatchEvent(new Event("input"))
      }
    }
  }

  function remember() {
    const url = new URL(window.location.href)
    const asked = { op: state.op, dtype: state.dtype, gpus: state.keys.join(","), n: state.n, view: state.view }
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
    window.history.replaceState(window.history.state, "", url)
  }

  function changed() {
    const { sizes, dtypes } = operation()
    if (!dtypes.includes(state.dtype)) state.dtype = dtypes[0]
    if (!sizes.includes(state.n)) {
      state.n = sizes.reduce((best, size) => (Math.abs(Math.log(size / state.n)) < Math.abs(Math.log(best / state.n)) ? size : best))
    }
    draw()
    push()
    remember()
  }

  // ---- what is said -------------------------------------------------------------------------------------------------

  const at = (key, dtype = state.dtype) => data.values[state.op]?.[dtype]?.[key]?.[operation().sizes.indexOf(state.n)]
  const name = (key) => data.devices.find((device) => device.key === key).name
  const article = (key) => {
    const said = name(key)
    return data.devices.find((device) => device.key === key).here ? said : `${/^[AHLMR]/.test(said) ? "an" : "a"} ${said}`
  }

  function seconds(value) {
    const [size, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => value >= size) ?? [1e-9, "ns"]
    return `${rounded(value / size)}\u00a0${unit}`
  }

  function rounded(value) {
    return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))
  }

  const ratio = (value) => Number(value.toPrecision(2)).toLocaleString("en", { minimumFractionDigits: value < 9.95 ? 1 : 0 })

  function answer() {
    const known = state.keys.filter((key) => at(key)).sort((a, b) => at(a)[0] - at(b)[0])
    if (!known.length) return ["Choose a device.", ""]
    const [first, ...others] = known
    const shape = operation().shapes[operation().sizes.indexOf(state.n)]
    const [time, low, high] = at(first)
    const last = others.at(-1)
    const about = last && at(last)[2] > 8 * at(last)[1] ? "roughly " : ""
    const beside = last ? `, ${about}${ratio(at(last)[0] / time)} times as fast as ${article(last)} (${seconds(at(last)[0])})` : ""
    const headline = `${capital(article(first))} is predicted to take ${seconds(time)} for ${shape} in ${state.dtype}${beside}.`
    const range = `90 % interval ${seconds(low)} to ${seconds(high)}.`
    return [headline, [range, gains(known), ...known.map(assumed)].filter(Boolean).join(" ")]
  }

  function gains(known) {
    const than = state.dtype === "fp32" ? "bf16" : "fp32"
    const said = known
      .filter((key) => at(key, than))
      .map((key) => {
        const [here, there] = [at(key)[0], at(key, than)[0]]
        const gain = state.dtype === "fp32" ? here / there : there / here
        return `${ratio(gain)}× on ${article(key)}`
      })
    return said.length ? `${state.dtype === "fp32" ? "bf16" : state.dtype} over fp32: ${said.join(", ")}.` : ""
  }

  function assumed(key) {
    const [, low, high] = at(key)
    if (high < 8 * low) return ""
    return `${capital(name(key))}: ${seconds(low)} to ${seconds(high)}, as nothing similar was measured.`
  }

  const capital = (text) => text[0].toUpperCase() + text.slice(1)

  // ---- what is drawn ------------------------------------------------------------------------------------------------

  function chip(type, group, label, value, checked, onChange) {
    const box = document.createElement("label")
    box.className = "chip"
    const input = Object.assign(document.createElement("input"), { type, name: group, value, checked })
    input.addEventListener("change", () => onChange(input.checked))
    box.append(input, ...label)
    return box
  }

  function text(content, className = "") {
    return Object.assign(document.createElement("span"), { textContent: content, className })
  }

  function radios(selector, group, options, now, choose) {
    const place = find(selector)
    if (place.dataset.options !== options.map(([value]) => value).join()) {
      place.dataset.options = options.map(([value]) => value).join()
      place.replaceChildren(
        ...options.map(([value, label]) => chip("radio", group, [text(label)], value, false, () => choose(value))),
      )
    }
    for (const input of place.querySelectorAll("input")) input.checked = input.value === now
  }

  function devices() {
    const place = find(".devices")
    if (!place.childElementCount) {
      const colors = getComputedStyle(place).getPropertyValue("--st-chart-categorical-colors").split(/,(?![^(]*\))/)
      let index = 0
      for (const device of data.devices) {
        const dot = text("", "dot")
        dot.style.background = device.here ? "var(--st-text-color)" : colors[index++ % colors.length]
        const toggle = (checked) => {
          const without = state.keys.filter((key) => key !== device.key)
          state.keys = checked ? [...without, device.key] : without
          changed()
        }
        const made = chip("checkbox", "device", [dot, text(device.name), text("", "time")], device.key, false, toggle)
        if (device.here) made.classList.add("own")
        place.append(made)
      }
    }
    for (const input of place.querySelectorAll("input")) {
      input.checked = state.keys.includes(input.value)
      const found = at(input.value)
      input.parentElement.querySelector(".time").textContent = found ? seconds(found[0]) : "–"
    }
  }

  function draw() {
    const { sizes, dtypes } = operation()
    radios(".operations", "operation", data.operations.map(({ name, title }) => [name, title]), state.op, (value) => {
      state.op = value
      state.n = operation().usual
      changed()
    })
    radios(".dtypes", "dtype", dtypes.map((each) => [each, each]), state.dtype, (value) => {
      state.dtype = value
      changed()
    })
    radios(".views", "view", Object.entries(data.views), state.view, (value) => {
      state.view = value
      changed()
    })
    devices()
    const slider = find(".size input")
    slider.max = sizes.length - 1
    slider.value = sizes.indexOf(state.n)
    slider.setAttribute("aria-valuetext", `n = ${state.n}`)
    find(".size output").textContent = state.n.toLocaleString("en")
    slider.oninput = () => {
      state.n = sizes[Number(slider.value)]
      changed()
    }
    const [headline, more] = answer()
    find(".headline").textContent = headline
    find(".more").textContent = more
    const run = find(".run")
    run.hidden = !data.run
    run.textContent = data.run
    run.onclick = () => setTriggerValue("run", { op: state.op, dtype: state.dtype, n: state.n })
  }

  // What was made for earlier data would go on to use these.
  for (const place of parentElement.querySelectorAll(".operations, .dtypes, .views, .devices")) {
    place.replaceChildren()
    delete place.dataset.options
  }
  draw()
  push()
  // Charts are embedded later than this is drawn, and anew when their data changes.
  const timer = window.setInterval(push, 150)
  return () => window.clearInterval(timer)
}
