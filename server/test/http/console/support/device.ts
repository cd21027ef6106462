import type { Browser, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { patienceMs } from '../../../support/patience.ts'

export type Device = { readonly page: Page; readonly cdp: CDPSession; readonly complaints: string[] }

/** A browser of its own, with an authenticator that approves everything. */
export async function openDevice(
  chromium: Browser,
  locale = 'en-US',
  options: BrowserContextOptions = {},
): Promise<Device & { readonly authenticatorId: string }> {
  const context = await chromium.newContext({ locale, ...options })
  context.setDefaultTimeout(patienceMs)
  const page = await context.newPage()
  const complaints: string[] = []
  // Refusals are answers with an error status, which browsers log.
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (401|409|410)/.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  return { page, cdp, complaints, authenticatorId: await addAuthenticator(cdp, 'internal') }
}

export async function addAuthenticator(cdp: CDPSession, transport: 'internal' | 'usb'): Promise<string> {
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport,
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return authenticatorId
}
