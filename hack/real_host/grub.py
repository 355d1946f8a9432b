"""GRUB's configuration and its environment, in which a boot that did not end is recorded.

This is our own configuration. It follows what elemental 1.1.7 describes: the image is named by cos-img/filename, the
kernel is read from the image, and a boot after an upgrade that has begun and not ended selects the fallback.
"""

from __future__ import annotations

#: Bytes of the environment's file.
_ENVIRONMENT_SIZE = 1024
_HEADER = "# GRUB Environment Block\n"
#: Modules of the core image, so that GRUB needs no further file.
MODULES = (
    *("biosdisk", "part_gpt", "ext2", "search", "search_label", "loopback", "linux", "normal", "configfile"),
    *("loadenv", "test", "echo", "serial", "terminal", "halt", "reboot"),
)
#: The file of the state partition with the marks of an attempt to boot, and the marks: set by elemental's hook after an
#: upgrade, and by GRUB before the first boot of what was installed.
ASSESSMENT = "boot_assessment"
ASSESSED, TENTATIVE = "enable_boot_assessment", "boot_assessment_tentative"
EMBEDDED = "search --no-floppy --label COS_STATE --set root\nconfigfile ($root)/grub2/grub.cfg\n"

CONFIG = f"""serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
search --no-floppy --label COS_OEM --set oem
search --no-floppy --label COS_STATE --set state
if [ -f ($oem)/grubenv ]; then
    load_env --file ($oem)/grubenv
fi
load_env --file ($state)/{ASSESSMENT}
set image=active
if [ "${{{ASSESSED}}}" = yes ]; then
    if [ "${{{TENTATIVE}}}" = yes ]; then
        set image=passive
    else
        set {TENTATIVE}=yes
        save_env --file ($state)/{ASSESSMENT} {TENTATIVE}
    fi
fi
if [ ! -f ($state)/cOS/$image.img ]; then
    set image=passive
fi
echo "starting $image.img"
set options="rd.cos.oemlabel=COS_OEM console=ttyS0 quiet ${{third_party_kernel_args}}"
loopback image ($state)/cOS/$image.img
linux (image)/boot/vmlinuz root=LABEL=COS_STATE cos-img/filename=/cOS/$image.img $options
initrd (image)/boot/initrd
boot
"""


def environment(**values: str) -> bytes:
    """Return the file of an environment with these values."""
    text = _HEADER + "".join(f"{name}={value}\n" for name, value in values.items())
    return text.encode().ljust(_ENVIRONMENT_SIZE, b"#")
