import type { Language } from './language.ts'

export const english: Language = {
  tag: 'en',
  direction: 'ltr',
  name: 'English',
  texts: {
    title: 'Pay {amount} to {store}',
    payStore: 'Pay {store}',
    amountDue: 'Amount due',
    order: 'Order',
    payTo: 'Paid to',
    network: 'Network',
    validUntil: 'Valid until',
    direct: 'The money goes straight to the store’s wallet. You pay no network fee.',
    testMode: 'Test: no real money',
    help: 'Questions? Ask the store and name {checkout}.',
    languages: 'Languages',

    walletTitle: 'Pay with your wallet',
    walletAbout: 'One signature. No gas, no network fee.',
    payWith: 'Pay with {wallet}',
    unnamedWallet: 'browser wallet',
    noWallet: 'There is no wallet in this browser. Use your phone, or send the payment yourself.',
    needsScript:
      'Your browser does not run JavaScript, so a wallet in it cannot be asked. Use a wallet app on your phone, or send the payment yourself.',

    phoneTitle: 'Pay with your phone',
    phoneAbout: 'Scan with your camera. This page opens there, and you pay with the wallet on your phone.',
    appsTitle: 'Open in a wallet app',
    qrPage: 'QR code of the address of this page',
    qrAddress: 'QR code of the address to send to',
    qrPayment: 'QR code that opens this payment in a wallet',

    sendTitle: 'Send it yourself',
    sendAbout:
      'For exchanges, and for wallets that cannot sign this payment. You get an address and an exact amount that is kept for you. Your wallet or exchange charges its own fee.',
    sendButton: 'Show address and amount',
    sendNetwork: 'Network',
    sendExact: 'Send exactly this amount. The last digits tell the store that it is yours.',
    sendLinked:
      'Scan the code or open the link in a wallet on this network. It carries a mark by which the payment is known as yours: sent in another way, it is not found.',
    sendLink: 'Open in a wallet',
    sendAmount: 'Exact amount',
    sendAddress: 'Address',
    sendWarning: 'Send {asset} on {network} only. Another token or network does not arrive, and may be lost.',
    sendFee: 'If your exchange takes its fee from the amount, add it: exactly this much must arrive.',
    sendCheck: 'Check the whole address after pasting it, the middle too.',
    hashTitle: 'You sent it, and nothing happens?',
    hashLabel: 'Transaction hash',
    hashButton: 'Look for it',
    copy: 'Copy',
    copied: 'Copied',

    states: {
      connecting: { title: 'Connecting', text: 'Allow the connection in your wallet.' },
      switching: {
        title: 'Wrong network',
        text: 'Your wallet is on another network. Allow the change to {network} in your wallet.',
      },
      signing: { title: 'Sign in your wallet', text: 'Compare the amount and the address, then sign.' },
      settling: {
        title: 'Settling your payment',
        text: 'This takes a few seconds. Nothing more needs to be signed.',
      },
      rejected: { title: 'Nothing was paid', text: 'You declined in your wallet. You can try again.' },
      pending: {
        title: 'Your wallet is waiting',
        text: 'A request is already open in your wallet. Open the wallet and answer it, then try again.',
      },
      funds: {
        title: 'Not enough {asset}',
        text: 'This account has less than {amount} {asset} on {network}. Add some, or choose another account. Nothing was paid.',
      },
      smart: {
        title: 'Your wallet cannot sign this payment',
        text: 'Its smart-account mode does not support it. Nothing was paid. Send it as an ordinary transfer instead: see below.',
      },
      chain: {
        title: 'Your wallet is not on {network}',
        text: 'Change to {network} in your wallet, then try again. Nothing was paid.',
      },
      tab: {
        title: 'Open in another tab',
        text: 'This payment is being made in another tab or window. Go on there.',
      },
      changed: {
        title: 'This page has changed',
        text: 'Nothing was paid. Load the page again before you pay.',
      },
      offline: {
        title: 'No connection',
        text: 'Your payment is signed and kept. It is sent as soon as you are online again. Do not pay again.',
      },
      unavailable: {
        title: 'One moment',
        text: 'Your payment is signed and kept. The service is busy, and it is sent again by itself. Do not pay again.',
      },
      failed: { title: 'That did not work', text: 'Nothing was paid. You can try again.' },
    },
    startOver: 'Start over',
    notices: {
      crowded: 'Too many people are sending amounts like this one. Pay with a wallet, or try again later.',
      in_progress: 'A payment is being settled. Wait for it before you send anything.',
      closed: 'This payment can no longer be made.',
      unavailable: 'This cannot be done now. Try again in a minute.',
      looking: 'We are looking for this transaction. This page changes when it is found.',
      not_found: 'There is no such transaction on {network} yet. Check the hash, or try again in a minute.',
      invalid_hash: 'That is no transaction hash. It begins with 0x and has 66 characters.',
      unmatched: 'The transaction was found, but it is not the exact payment. The store has been told.',
    },
    noteTitle: 'About what you sent',
    notes: {
      late: '{amount} {asset} arrived after the time was over. The store has been told and decides.',
      underpaid:
        '{amount} {asset} arrived, less than is due. The store has been told. Do not send the rest by itself: ask the store.',
      overpaid:
        '{amount} {asset} arrived, more than is due. The store has been told. Ask it for the difference.',
      unmatched:
        '{amount} {asset} arrived, but not as the exact amount. The store has been told and decides.',
    },

    processing: {
      title: 'Your payment is being settled',
      text: 'It is on its way. You may close this page: it will be finished all the same. Do not pay again.',
    },
    completed: { title: 'Payment received', text: 'Thank you. {store} has been paid.' },
    expired: {
      title: 'This payment has expired',
      text: 'The time to pay is over. Go back to the store to order again.',
    },
    canceled: {
      title: 'This payment was canceled',
      text: 'The store has withdrawn it. Nothing can be paid here any more.',
    },
    notFound: {
      title: 'There is no such payment',
      text: 'Check the address, or ask the store for a new link.',
    },
    unavailable: {
      title: 'This page cannot be shown now',
      text: 'This is a fault on our side. Nothing is lost: load the page again in a minute. If you have paid, do not pay again.',
    },

    transaction: 'Transaction',
    from: 'From',
    amount: 'Amount',
    checkout: 'Reference',
    receipt: 'Receipt',
    returnTo: 'Back to {host}',
    leaving: 'You are taken there in {seconds} s.',
    stay: 'Stay here',
    checkAgain: 'Check again',
  },
}
