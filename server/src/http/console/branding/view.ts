import type { UpdateStore, Store as WireStore } from '@farthing/sdk'
import { currencies, minorDigitsOf } from '../../../rates/iso4217.ts'
import { contrastOf, inkOn } from '../../page/document.ts'
import { fill, type Html, html, lines } from '../../page/html.ts'
import { renderFilter, renderHead } from '../parts.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'
import { type PreviewState, previewStates } from './preview.ts'

/** What may be wrong, by field. */
export type BrandingFault = keyof Texts['branding']['faults']

export type Branding = {
  /** As entered, or as it is. */
  readonly store: WireStore & UpdateStore
  readonly logoUrl: string | null
  readonly fault: BrandingFault | null
  readonly isSaved: boolean
  readonly state: PreviewState
}

/** Of a payment page: what it is on, by day and by night. */
const grounds = { light: '#ffffff', dark: '#14171f' } as const
/** What WCAG asks for controls. */
const contrastMin = 3
const colorDefault = '#2b50d8'
const zones = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')]

export function renderBranding(screen: Screen, branding: Branding): Html {
  const texts = screen.texts.branding
  const mayWrite = screen.may('branding:write')
  const { fault, isSaved } = branding
  return html`${renderHead(texts.title, { about: texts.about })}
${isSaved && html`<p class="note good" role="status">${texts.saved}</p>`}
${fault && html`<p class="note" id="fault" role="alert">${texts.faults[fault]}</p>`}
<div class="split even"><section class="pane">${!mayWrite && html`<p class="soft">${texts.mayNot}</p>`}
<form method="post" action="${screen.base}/branding" enctype="multipart/form-data">
<fieldset class="fields"${!mayWrite && html` disabled`}>${screen.formFields}
${renderFields(screen, branding)}
${mayWrite && html`<div><button>${texts.save}</button></div>`}</fieldset></form></section>
${renderPreviews(screen, branding)}</div>`
}

function renderFields(screen: Screen, { store, logoUrl, fault }: Branding): Html {
  const texts = screen.texts.branding
  const { name, accentColor, supportEmail, supportUrl, timeZone, reportCurrency } = store
  const { legalName, legalAddress, taxId } = store
  const wrong = (field: BrandingFault) =>
    fault === field && html` aria-invalid="true" aria-describedby="fault"`
  const isImage = logoUrl?.startsWith('data:') ?? false
  return html`<label>${texts.name}<input name="name" value="${name}" required maxlength="100" autocomplete="off"${wrong(
    'name',
  )}></label>
<label>${texts.logo}${
    isImage && logoUrl !== null && html`<img class="logo" src="${logoUrl}" alt="">`
  }<input name="logo" type="file" accept="image/*"><small>${
    logoUrl !== null && !isImage && html`${texts.linked} `
  }${texts.logoAbout}</small></label>
${
  logoUrl !== null &&
  html`<label class="check"><input type="checkbox" name="removeLogo" value="yes">${texts.removeLogo}</label>`
}
<label class="check"><input type="checkbox" name="hasColor" value="yes"${accentColor !== null && html` checked`}>${
    texts.ownColor
  }</label>
<input type="hidden" name="shownColor" value="${accentColor ?? colorDefault}"><label>${
    texts.color
  }<input type="color" name="accentColor" value="${accentColor ?? colorDefault}"${wrong(
    'accentColor',
  )}><small>${accentColor !== null && describeColor(screen, accentColor)}</small></label>
<h2>${texts.support}</h2><p class="soft">${texts.supportAbout}</p>
<label>${texts.supportEmail}<input name="supportEmail" type="email" value="${
    supportEmail ?? ''
  }" maxlength="254" autocomplete="off"${wrong('supportEmail')}></label>
<label>${texts.supportUrl}<input name="supportUrl" type="url" value="${
    supportUrl ?? ''
  }" maxlength="2048" autocomplete="off"${wrong('supportUrl')}></label>
<h2>${texts.legal}</h2><p class="soft">${texts.legalAbout}</p>
<label>${texts.legalName}<input name="legalName" value="${
    legalName ?? ''
  }" maxlength="200" autocomplete="off"${wrong('legalName')}></label>
<label>${texts.legalAddress}<textarea name="legalAddress" rows="3" maxlength="605"${wrong('legalAddress')}>${lines(
    legalAddress ?? '',
  )}</textarea></label>
<label>${texts.taxId}<input name="taxId" value="${taxId ?? ''}" maxlength="50" autocomplete="off"${wrong(
    'taxId',
  )}></label>
<h2>${texts.books}</h2>
<label>${texts.timeZone}<select name="timeZone"${wrong('timeZone')}>${options(
    zones.includes(timeZone) ? zones : [timeZone, ...zones],
    timeZone,
  )}</select></label>
<label>${texts.reportCurrency}<select name="reportCurrency"${wrong('reportCurrency')}>${offeredWith(
    reportCurrency,
  ).map(
    ([code, title]) =>
      html`<option value="${code}"${code === reportCurrency && html` selected`}>${code} · ${title}</option>`,
  )}</select></label>`
}

/** Nobody keeps books in gold or in the code for testing: those without a smallest unit are left out, unless one is in use. */
function offeredWith(chosen: string): [string, string][] {
  return [...currencies].filter(([code]) => code === chosen || minorDigitsOf(code) !== null)
}

function options(values: readonly string[], chosen: string): Html {
  return html`${values.map((value) => html`<option${value === chosen && html` selected`}>${value}</option>`)}`
}

/** Whether it can be read and seen, in words. */
function describeColor(screen: Screen, color: string): Html | null {
  if (!/^#[0-9a-f]{6}$/i.test(color)) return null
  const texts = screen.texts.branding
  const { tag } = screen.locale
  const format = new Intl.NumberFormat(tag, { maximumFractionDigits: 1 })
  const ratio = (other: string) => format.format(contrastOf(color, other))
  const ink = inkOn(color)
  const faint = {
    light: contrastOf(color, grounds.light) < contrastMin,
    dark: contrastOf(color, grounds.dark) < contrastMin,
  }
  return html`${fill(texts.contrast[ink === '#ffffff' ? 'white' : 'black'], { ratio: ratio(ink) })} ${
    faint.light && html`${fill(texts.paleOnLight, { ratio: ratio(grounds.light) })} `
  }${faint.dark && fill(texts.paleOnDark, { ratio: ratio(grounds.dark) })}${
    !faint.light && !faint.dark && texts.standsOut
  }`
}

function renderPreviews(screen: Screen, { state }: Branding): Html {
  const texts = screen.texts.branding
  const base = `${screen.base}/branding`
  const title = texts.frame.replace('{state}', texts.states[state])
  return html`<section class="facts stack" id="preview"><h2>${texts.preview}</h2>
<p class="soft">${texts.previewAbout}</p>
<nav class="row" aria-label="${texts.preview}">${previewStates.map((each) =>
    renderFilter(`${base}?state=${each}#preview`, texts.states[each], each === state),
  )}</nav>
<iframe class="preview" sandbox title="${title}" src="${base}/preview?state=${state}"></iframe></section>`
}
