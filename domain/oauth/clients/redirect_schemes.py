"""URI schemes that are not allowed in redirect URIs.

What is left are https, http and private-use schemes. RFC 8252 section 7.1 wants those to be a
domain name turned around (com.example.app); many in the field have no dot, and work here as well.
"""

#: They run code, or show something inside the browser instead of leaving it.
_IN_THE_BROWSER = (
    "about blob brave chrome chrome-error chrome-search chrome-untrusted data devtools edge feed"
    " file filesystem jar javascript livescript mhtml mk mocha moz-icon ms-its opera pcast res"
    " resource vbscript view-source vivaldi wyciwyg"
)
#: They open a program that has nothing to do with the application, with our answer in its hands.
_OTHER_PROGRAMS = (
    "android-app callto content facetime facetime-audio geo intent irc irc6 ircs itms itms-apps"
    " itms-services magnet mailto maps market message mms mmst ms-appinstaller ms-cxh ms-excel"
    " ms-msdt ms-officecmd ms-powerpoint ms-settings ms-windows-store ms-word nntp news search"
    " search-ms shell sip sips skype sms smsto snews ssh tel telnet tn3270 vnc rdp webcal webcals"
    " xmpp"
)
#: They are protocols of the network, or no addresses to go to; `urn` is not among them, because
#: programs in the field still register urn:ietf:wg:oauth:2.0:oob.
_OF_THE_NETWORK = (
    "acap afp cid cifs coap coaps dav davs dict dns dns-sd ftp ftps git gopher imap imaps info ipp"
    " ipps jdbc ldap ldaps mid mqtt mqtts nfs pop pop3 redis rediss rlogin rsync rtmp rtsp rtsps"
    " sftp smb smtp smtps snmp spdy stun stuns svn tag tftp turn turns uuid wais ws wss"
)

FORBIDDEN = frozenset(f"{_IN_THE_BROWSER} {_OTHER_PROGRAMS} {_OF_THE_NETWORK}".split())
