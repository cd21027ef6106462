import { refusals } from '../../../members/refusal.ts'
import type { Language } from './language.ts'

export const english: Language = {
  tag: 'en',
  direction: 'ltr',
  name: 'English',
  texts: {
    languages: 'Languages',
    signOut: 'Sign out',
    time: '{time} UTC',
    browserOn: '{browser} on {system}',
    someBrowser: 'A browser',

    signIn: {
      title: 'Sign in',
      heading: 'Sign in to Farthing',
      about:
        'Use the passkey that you made when you were invited: your fingerprint, face, PIN or security key.',
      button: 'Sign in with a passkey',
      through: 'Sign in through {host}',
      needsScript: 'Passkeys need JavaScript. Allow it for this site.',
      lost: 'No passkey, or lost it? Ask an owner of your store for a new link.',
    },

    enrol: {
      title: 'Your invitation',
      hasPasskey: 'If you have a passkey already, {signIn}.',
      signIn: 'sign in',
      join: 'Join {store}',
      invited: 'You are invited as {name}, with the role {role}.',
      noPassword:
        'You need no password. This device makes a passkey, which you unlock with your fingerprint, face or PIN each time you sign in.',
      recover: 'A new passkey for {store}',
      recoverAbout:
        'This link is for {name}. It makes a passkey on this device. All your earlier passkeys stop working, and you are signed out everywhere else.',
      button: 'Create a passkey',
      joinAs: 'Join as {name}, with the passkey you have',
      needsScript: 'Passkeys need JavaScript. Allow it for this site, then open the link again.',
    },

    account: {
      title: 'Your account',
      stores: 'Stores',
      youAre: {
        owner: 'You are an owner',
        manager: 'You are a manager',
        developer: 'You are a developer',
        viewer: 'You are a viewer',
      },
      members: 'Members',
      passkeys: 'Passkeys',
      made: 'Made {made}',
      madeAndUsed: 'Made {made}, last used {used}',
      remove: 'Remove',
      passkeyName: 'Name of another passkey',
      passkeyExample: 'Security key',
      addPasskey: 'Add a passkey',
      provider: 'Company sign-in',
      connected: 'Your account there signs you in.',
      notConnected: 'Not connected. Your passkey stays what confirms changes.',
      connect: 'Connect',
      disconnect: 'Disconnect',
      sessions: 'Where you are signed in',
      here: '(here)',
      session: 'From {address}, since {since}, last seen {seen}',
      end: 'End',
    },

    team: {
      title: 'Members of {store}',
      you: '(you)',
      since: 'since {time}',
      roleOf: 'Role of {name}',
      changeRole: 'Change role',
      lostPasskey: 'Lost passkey',
      remove: 'Remove',
      open: 'Open invitations',
      newPasskey: 'new passkey',
      until: 'until {time}',
      withdraw: 'Withdraw',
      invite: 'Invite somebody',
      name: 'Name',
      email: 'E-mail, if you want to note it',
      emailMailed: 'E-mail, if the link is to be sent there too',
      role: 'Role',
      makeLink: 'Make a link',
      back: 'Back to your account',
      roles: { owner: 'owner', manager: 'manager', developer: 'developer', viewer: 'viewer' },
      describeRole: {
        owner: 'Owner: everything',
        manager: 'Manager: decides about payments, refunds within a limit',
        developer: 'Developer: keys and webhooks',
        viewer: 'Viewer: sees payments and reports',
      },
    },

    link: {
      title: 'Send this link',
      heading: 'Send this link to {name}',
      join: 'With it they make a passkey and join.',
      recover: 'With it they make a new passkey. Their old ones stop working then.',
      about:
        'It works once, until {time}, and it is shown only now. Whoever has it can use it, so send it to nobody else.',
      mailed: 'It is also on its way to {email}.',
      copy: 'Copy the link',
      copied: 'Copied',
      back: 'Back to the members',
    },

    failed: { title: 'That did not work', back: 'Back to the console' },
    refusals,
    mistakes: {
      length: 'must be 1 to 100 bytes long.',
      characters: 'must not contain control characters or characters that change the direction of text.',
      email: 'must be an e-mail address, such as help@shop.example.',
    },
    problems: {
      cross_site:
        'This was not submitted from the console, the page is too old, or the browser keeps no cookies. Reload the page.',
      rate_limited: 'Too many attempts from your address. Wait a minute.',
      unavailable: 'The console cannot be reached right now. Try again in a moment.',
      internal: 'Something went wrong here. Try again in a moment.',
    },
    script: {
      unsupported: 'This browser cannot use passkeys. Update it, or use another one.',
      unused: 'The passkey was not used: you canceled, or it took too long. Try again.',
      known: 'This device already has a passkey of yours.',
      failed: 'That did not work. Check your connection and try again.',
    },
  },
}
